import assert from "node:assert/strict";
import test from "node:test";
import { joinWords, splitWords } from "../../shell/command-words.js";

test("a command line is split as a shell would, and nothing is expanded", () => {
  assert.deepEqual(splitWords("  npx  -y @scope/agent --acp "), ["npx", "-y", "@scope/agent", "--acp"]);
  assert.deepEqual(splitWords(`'my agent' "a \\"b\\" $HOME" c\\ d ''`), ["my agent", 'a "b" $HOME', "c d", ""]);
  assert.deepEqual(splitWords(""), []);
  assert.equal(splitWords("'open"), null);
});

test("what is joined is split into the same words", () => {
  for (const words of [["a"], ["a b", "it's", "", "$x", "line\nbreak"], ["--key=a/b:c"]]) assert.deepEqual(splitWords(joinWords(words)), words);
});
