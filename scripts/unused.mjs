#!/usr/bin/env node
// Checks that each crate uses every dependency it names: the name must appear in a source file of that crate.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const args = ["metadata", "--locked", "--no-deps", "--format-version", "1"];
const metadata = JSON.parse(execFileSync("cargo", args, { cwd: root, maxBuffer: 1 << 28 }));

/** Where code may use each kind of dependency. */
const PLACES = { normal: ["src"], dev: ["src", "tests", "benches", "examples"], build: ["build.rs"] };

/** All Rust source text in these places of a crate. */
function text(crate, places) {
  const filesIn = (place) =>
    readdirSync(place, { recursive: true }).filter((name) => name.endsWith(".rs")).map((name) => join(place, name));
  const files = places.map((place) => join(crate, place)).filter(existsSync)
    .flatMap((place) => place.endsWith(".rs") ? [place] : filesIn(place));
  return files.map((file) => readFileSync(file, "utf8")).join("\n");
}

const problems = [];
for (const { name, manifest_path, dependencies } of metadata.packages) {
  for (const { name: wanted, rename, kind } of dependencies) {
    const pattern = new RegExp(`\\b${(rename ?? wanted).replaceAll("-", "_")}\\b`);
    if (!pattern.test(text(dirname(manifest_path), PLACES[kind ?? "normal"])))
      problems.push(`${name} does not use ${wanted}`);
  }
}
problems.forEach((problem) => console.error(problem));
console.log(`${metadata.packages.length} crates, ${problems.length} unused dependencies`);
process.exit(problems.length ? 1 : 0);
