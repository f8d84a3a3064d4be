import assert from "node:assert/strict";
import test from "node:test";
import { boxNew, sharedLength, tokens } from "../../portlet/block-tail.js";

test("the shared beginning ends where no tag and no entity is open", () => {
  assert.equal(sharedLength("<p>one</p>", "<p>one two</p>"), 6);
  assert.equal(sharedLength("<p>a</p>", "<p>a</pre>"), 4);
  assert.equal(sharedLength("<p>a &lt;</p>", "<p>a &lb;</p>"), 5);
  assert.equal(sharedLength("<i class=\"k\">", "<i class=\"f\">"), 0);
  assert.equal(sharedLength("", "<p>"), 0);
  assert.equal(sharedLength("<p>same</p>", "<p>same</p>"), 11);
  for (const [a, b] of [["<p>xy</p>", "<p>xz</p>"], ["abc", "abd"]]) {
    assert.equal(sharedLength(String(a), String(b)), sharedLength(String(b), String(a)));
  }
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
    boxNew(`y;\n${lines}<i class="k">le</i></code></pre>`),
    `y;\n<code-lines>${lines}</code-lines><i class="k">le</i></code></pre>`,
  );
  assert.equal(boxNew(`y;\n${line}</code>`), `y;\n${line}</code>`, "few are not worth it");
  const one = `<i class="s">${"a\n".repeat(1000)}`;
  assert.equal(boxNew(one), one);
});
