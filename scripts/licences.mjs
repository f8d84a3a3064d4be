#!/usr/bin/env node
// Every crate in the lock file must come under a licence that deny.toml allows, and from the registry.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const root = new URL("..", import.meta.url).pathname;
const list = /\[licenses\][^[]*allow = \[([^\]]*)\]/.exec(readFileSync(`${root}deny.toml`, "utf8"));
const allowed = new Set([...(list?.[1] ?? "").matchAll(/"([^"]+)"/g)].map((match) => match[1]));
const metadata = JSON.parse(execFileSync("cargo", ["metadata", "--locked", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 }));

/** Is this SPDX expression satisfied? AND binds tighter than OR; a slash is an old way to write OR. */
function permits(expression) {
  const words = expression.replaceAll("/", " OR ").replaceAll(/[()]/g, " $& ").trim().split(/\s+/);
  const either = () => {
    let good = both();
    while (words[0] === "OR") good = (words.shift(), both()) || good;
    return good;
  };
  const both = () => {
    let good = one();
    while (words[0] === "AND") good = (words.shift(), one()) && good;
    return good;
  };
  const one = () => {
    let name = words.shift();
    if (name === "(") {
      const good = either();
      words.shift();
      return good;
    }
    if (words[0] === "WITH") name += ` ${words.shift()} ${words.shift()}`;
    return allowed.has(name);
  };
  return either() && words.length === 0;
}

const complaints = [];
for (const { name, version, license, source } of metadata.packages) {
  if (!license || !permits(license)) complaints.push(`${name} ${version}: licence ${license ?? "unknown"} is not allowed`);
  if (source && !source.startsWith("registry+")) complaints.push(`${name} ${version}: comes from ${source}`);
}
console.log(`${metadata.packages.length} crates, ${allowed.size} licences allowed, ${complaints.length} complaints`);
for (const complaint of complaints) console.error(complaint);
process.exit(complaints.length ? 1 : 0);
