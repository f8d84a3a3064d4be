// seeds.mjs: writes the first inputs of every fuzz target into fuzz/corpus, from what the agents really said
// (crates/providers/tests/data), the golden messages and the rendering crate's test data.
//
//   node fuzz/seeds.mjs
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** Longer seeds only slow the fuzzer down: it learns from small ones. */
const SEED_BYTES_MAX = 8192;

/** Every file below `directory` whose name ends with `end`. */
function files(directory, end) {
  return readdirSync(join(root, directory), { recursive: true })
    .filter((name) => name.endsWith(end))
    .map((name) => join(root, directory, name));
}

function seed(target, bytes) {
  const directory = join(root, "fuzz/corpus", target);
  mkdirSync(directory, { recursive: true });
  const content = Buffer.from(bytes).subarray(0, SEED_BYTES_MAX);
  writeFileSync(join(directory, createHash("sha1").update(content).digest("hex")), content);
}

/** What the agent wrote, line by line: strings as they were, messages as JSON. */
function said(transcript) {
  const records = readFileSync(transcript, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return records.filter(({ dir }) => dir === "out").map(({ line }) => (typeof line === "string" ? line : JSON.stringify(line)));
}

/** Neighbouring lines together, as long as they stay small. */
function* stretches(lines) {
  let stretch = "";
  for (const line of lines) {
    if (stretch && stretch.length + line.length > SEED_BYTES_MAX / 2) {
      yield stretch;
      stretch = "";
    }
    stretch += `${line}\n`;
  }
  if (stretch) yield stretch;
}

for (const transcript of files("crates/providers/tests/data", ".ndjson")) {
  const isClaude = transcript.includes("claude-code-");
  for (const stretch of stretches(said(transcript))) {
    if (isClaude) seed("claude_line", stretch);
    // The first byte chooses between replay and live turn.
    else for (const first of ["0", "1"]) seed("acp_line", first + stretch);
  }
}
for (const file of files("crates/providers/tests/data", ".jsonl")) {
  for (const stretch of stretches(readFileSync(file, "utf8").trim().split("\n"))) {
    // The first byte is the number of items on a page.
    for (const items of ["\x01", "\x40"]) seed("claude_session_file", items + stretch);
  }
}
for (const stretch of stretches(said(files("crates/providers/tests/data", "errors.ndjson")[0]))) {
  // Lengths of chunks and lines are the first two bytes.
  for (const lengths of ["\x00\x10", "\x07\xff"]) seed("framing", lengths + stretch.replaceAll("\n", "\r\n"));
}
for (const golden of files("crates/protocol/goldens", ".json")) seed("messages", readFileSync(golden));
for (const file of files("crates/testkit/tests/data", ".json")) seed("catalog_files", readFileSync(file));
for (const list of ["projects", "sessions"]) {
  // As the earlier build wrote it, as a later one may, and damaged.
  const [file] = files("crates/testkit/tests/data", `${list}.json`);
  const { version, [list]: records } = JSON.parse(readFileSync(file, "utf8"));
  seed("catalog_files", JSON.stringify({ version, data: records }));
  seed("catalog_files", JSON.stringify({ version: 2, [list]: records }));
  seed("catalog_files", JSON.stringify({ version, [list]: [...records, { id: 7 }], more: { than: 1.5 } }));
}

const examples = ["commonmark.json", "gfm.json"].flatMap((name) => JSON.parse(readFileSync(join(root, "crates/rendering/tests/data", name), "utf8")));
const attacks = readFileSync(join(root, "crates/rendering/tests/data/xss.txt"), "utf8").split("\n").filter(Boolean);
for (const text of [...examples.map(({ markdown }) => markdown), ...attacks]) {
  seed("markdown_live", `\x04${text}`);
  seed("markdown_safe", text);
}
for (const target of readdirSync(join(root, "fuzz/corpus"))) {
  console.log(`${basename(target)}: ${readdirSync(join(root, "fuzz/corpus", target)).length} inputs`);
}
