// Measures the page in Chromium against the real binary and prints its part of the table of `scripts/bench`. `--json
// FILE` adds the rows to a file that holds those of the server; `--quick` measures less; a word measures only parts
// named so.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { parts } from "./measurements.js";
import { json, table } from "./rows.js";
import { closeBrowser } from "./browser.js";

const args = process.argv.slice(2);
const quick = args.includes("--quick");
const at = args.indexOf("--json");
const file = at < 0 ? undefined : args[at + 1];
if (at >= 0 && !file) throw new Error("--json needs the name of a file");
const named = args.filter((arg, index) => !arg.startsWith("--") && (at < 0 || index !== at + 1));

const rows = [];
for (const [name, measure] of Object.entries(parts)) {
  if (named.length === 0 || named.some((arg) => name.includes(arg))) rows.push(...await measure({ quick }));
}
await closeBrowser();
console.log(table(rows));
if (file) {
  const before = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : [];
  writeFileSync(file, `${JSON.stringify([...before, ...json(rows)], null, 2)}\n`);
}
