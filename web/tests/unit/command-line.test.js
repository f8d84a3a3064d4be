import assert from "node:assert/strict";
import test from "node:test";
import { joinCommandLine, splitCommandLine } from "../../shell/command-line.js";

test("a command line is split as a shell would, and nothing is expanded", () => {
  assert.deepEqual(splitCommandLine("  npx  -y @scope/agent --acp "), ["npx", "-y", "@scope/agent", "--acp"]);
  assert.deepEqual(splitCommandLine(`'my agent' "a \\"b\\" $HOME" c\\ d ''`), ["my agent", 'a "b" $HOME', "c d", ""]);
  assert.deepEqual(splitCommandLine(""), []);
  assert.equal(splitCommandLine("'open"), null);
});

test("a joined command line is split into the same parts", () => {
  for (const parts of [["a"], ["a b", "it's", "", "$x", "line\nbreak"], ["--key=a/b:c"]]) {
    assert.deepEqual(splitCommandLine(joinCommandLine(parts)), parts);
  }
});
