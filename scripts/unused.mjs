#!/usr/bin/env node
// Every dependency that a crate names is used by its code: its name stands in a source file of that crate.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = new URL("..", import.meta.url).pathname;
const metadata = JSON.parse(execFileSync("cargo", ["metadata", "--locked", "--no-deps", "--format-version", "1"], { cwd: root, maxBuffer: 1 << 28 }));

/** Where code stands that a kind of dependency may serve. */
const PLACES = { normal: ["src"], dev: ["src", "tests", "benches", "examples"], build: ["build.rs"] };

/** All Rust text in these places of a crate. */
function text(crate, places) {
  const files = places.map((place) => join(crate, place)).filter(existsSync).flatMap((place) =>
    place.endsWith(".rs") ? [place] : readdirSync(place, { recursive: true }).filter((name) => name.endsWith(".rs")).map((name) => join(place, name)));
  return files.map((file) => readFileSync(file, "utf8")).join("\n");
}

const complaints = [];
for (const { name, manifest_path, dependencies } of metadata.packages) {
  for (const { name: wanted, rename, kind } of dependencies) {
    const word = new RegExp(`\\b${(rename ?? wanted).replaceAll("-", "_")}\\b`);
    if (!word.test(text(dirname(manifest_path), PLACES[kind ?? "normal"]))) complaints.push(`${name} does not use ${wanted}`);
  }
}
complaints.forEach((complaint) => console.error(complaint));
console.log(`${metadata.packages.length} crates name ${complaints.length} dependencies that they do not use.`);
process.exit(complaints.length ? 1 : 0);
