// Runs each failed Rust test once more, by its exact name, to distinguish broken tests from flaky ones.
//
//   node scripts/rerun.mjs <log of cargo test> <file for the names of flaky tests>
//
// Prints one line per test, FLAKY or FAILED. The exit status is 0 only if every failed test passes this time. Whatever
// cannot be run alone (a documentation test, a test program that was aborted) stays failed. If too many tests failed
// for it to be chance, all of them stay failed.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

/** With more failures than this something is broken, and a second run would only cost time. */
const RERUN_MAX = 20;
const OUTPUT_BYTES_MAX = 1024 * 1024 * 1024;
/** A failure of cargo that names no test. */
const UNNAMED = /^error: (test failed|.*could not compile|could not execute)/;

const [log = "", flakyFile = ""] = process.argv.slice(2);

/** The failed tests of each test program, by the program's path, and the failures that have no test name. */
function failures(text) {
  const failed = new Map();
  const unnamed = [];
  let program = null;
  let names = null;
  for (const line of text.split("\n")) {
    const running = /^\s+Running .*\((.+)\)$/.exec(line);
    if (running) program = running[1];
    if (/^\s+Doc-tests /.test(line)) program = null;
    if (line === "failures:") names = [];
    else if (names && /^ {4}\S/.test(line)) names.push(line.trim());
    else if (/^test result: FAILED/.test(line)) {
      if (program && names?.length) failed.set(program, names);
      else unnamed.push(program ?? "a documentation test");
      names = null;
    } else if (UNNAMED.test(line) && !/to rerun pass/.test(line)) unnamed.push(line);
    else if (/process didn't exit successfully: .*\(signal: /.test(line)) unnamed.push(line.trim());
  }
  return { failed, unnamed };
}

/** The directory in which cargo runs a test program: that of the package of its first source file. The compiler writes
 *  the list of its source files beside the program. */
function directoryOf(program) {
  const sources = `${program}.d`;
  const first = existsSync(sources) ? /^[^:]*: (\S+)/m.exec(readFileSync(sources, "utf8"))?.[1] : undefined;
  const directory = first && /^(.*?crates\/[^/]+)\//.exec(first)?.[1];
  return directory && resolve(directory);
}

const { failed, unnamed } = failures(readFileSync(log, "utf8"));
const count = [...failed.values()].reduce((sum, names) => sum + names.length, 0);
writeFileSync(flakyFile, "");
if (unnamed.length > 0) console.log(`Not run again: ${unnamed.join(", ")}`);
if (count > RERUN_MAX) {
  console.log(`${count} tests failed: too many to be chance, so none is run again.`);
  process.exit(1);
}
const flaky = [];
const broken = [];
for (const [program, names] of failed) {
  const path = resolve(program);
  const cwd = directoryOf(path);
  for (const name of names) {
    const env = { ...process.env, CARGO_MANIFEST_DIR: cwd };
    const options = { cwd, env, encoding: "utf8", maxBuffer: OUTPUT_BYTES_MAX };
    const again = cwd && spawnSync(path, ["--exact", name, "--test-threads=1"], options);
    const passed = again && again.status === 0 && /^test result: ok\. 1 passed/m.test(again.stdout);
    (passed ? flaky : broken).push(name);
    console.log(`${passed ? "FLAKY" : "FAILED"} ${name}`);
    if (!passed && again) console.log(again.stdout.slice(-4000), again.stderr.slice(-4000));
  }
}
writeFileSync(flakyFile, flaky.map((name) => `${name}\n`).join(""));
process.exit(broken.length + unnamed.length > 0 || count === 0 ? 1 : 0);
