#!/usr/bin/env node
// Checks that every crate in the lock file has a licence that deny.toml allows and comes from the registry.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const root = new URL("..", import.meta.url).pathname;
const list = /\[licenses\][^[]*allow = \[([^\]]*)\]/.exec(readFileSync(`${root}deny.toml`, "utf8"));
const allowed = new Set([...(list?.[1] ?? "").matchAll(/"([^"]+)"/g)].map((match) => match[1]));
const options = { cwd: root, maxBuffer: 1 << 28 };
const metadata = JSON.parse(execFileSync("cargo", ["metadata", "--locked", "--format-version", "1"], options));

/** Whether an SPDX expression is satisfied. AND binds tighter than OR; a slash is the old way to write OR. */
function permits(expression) {
  const tokens = expression.replaceAll("/", " OR ").replaceAll(/[()]/g, " $& ").trim().split(/\s+/);
  const either = () => {
    let good = both();
    while (tokens[0] === "OR") good = (tokens.shift(), both()) || good;
    return good;
  };
  const both = () => {
    let good = one();
    while (tokens[0] === "AND") good = (tokens.shift(), one()) && good;
    return good;
  };
  const one = () => {
    let name = tokens.shift();
    if (name === "(") {
      const good = either();
      tokens.shift();
      return good;
    }
    if (tokens[0] === "WITH") name += ` ${tokens.shift()} ${tokens.shift()}`;
    return allowed.has(name);
  };
  return either() && tokens.length === 0;
}

const problems = [];
for (const { name, version, license, source } of metadata.packages) {
  if (!license || !permits(license))
    problems.push(`${name} ${version}: licence ${license ?? "unknown"} is not allowed`);
  if (source && !source.startsWith("registry+")) problems.push(`${name} ${version}: comes from ${source}`);
}
console.log(`${metadata.packages.length} crates, ${allowed.size} licences allowed, ${problems.length} problems`);
for (const problem of problems) console.error(problem);
process.exit(problems.length ? 1 : 0);
