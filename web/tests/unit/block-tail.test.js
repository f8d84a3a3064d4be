import assert from "node:assert/strict";
import test from "node:test";
import { boxNewLines, keptLength, tokens } from "../../portlet/block-tail.js";

test("the kept beginning ends where no tag and no entity is open", () => {
  assert.equal(keptLength("<p>one</p>", 6), 6);
  assert.equal(keptLength("<p>a</p>", 7), 4);
  assert.equal(keptLength("<p>a &lt;</p>", 7), 5);
  assert.equal(keptLength("<i class=\"k\">", 10), 0);
  assert.equal(keptLength("", 3), 0);
  assert.equal(keptLength("<p>same</p>", 11), 11);
  assert.equal(keptLength("<p>same</p>", 99), 11, "never more than there is");
  assert.equal(keptLength("abc", 2), 2);
});

test("an end is read as tags and lengths of text, entities as one letter", () => {
  assert.deepEqual(tokens("a&lt;b<br><b class=\"hi\">x</b></p>")?.map(({ kind, length }) => `${kind} ${length}`), [
    "text 3",
    "void 0",
    "open 0",
    "text 1",
    "close 0",
    "close 0",
  ]);
  assert.deepEqual(tokens(""), []);
  assert.equal(tokens("a < b"), null);
});

test("lines that come many at once are boxed, from the start of one to the end of another, never inside a mark", () => {
  const line = '<i class="k">let</i> x = 1;\n';
  const comment = '<i class="c">/* a\n b */</i>\n';
  const lines = line.repeat(40) + comment;
  assert.equal(
    boxNewLines(`y;\n${lines}<i class="k">le</i></code></pre>`),
    `y;\n<code-lines>${lines}</code-lines><i class="k">le</i></code></pre>`,
  );
  assert.equal(boxNewLines(`y;\n${line}</code>`), `y;\n${line}</code>`, "few are not worth it");
  const one = `<i class="s">${"a\n".repeat(1000)}`;
  assert.equal(boxNewLines(one), one);
});
