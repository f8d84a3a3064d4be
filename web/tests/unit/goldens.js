// The messages as Rust writes them, one file per variant.
import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../../../crates/protocol/goldens/", import.meta.url);

/** @param {string} prefix @returns {[string, any][]} */
export const goldens = (prefix) => readdirSync(folder)
  .filter((name) => name.startsWith(prefix) && name.endsWith(".json"))
  .map((name) => [name, JSON.parse(readFileSync(new URL(name, folder), "utf8"))]);
