import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const web = fileURLToPath(new URL("../../", import.meta.url));

/** Every module that one needs, itself included. @param {string} file @param {Set<string>} [found] */
function modules(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, name] of readFileSync(file, "utf8").matchAll(/^import (?:[^"]*from )?"(\.[^"]+)";/gm)) {
    modules(join(dirname(file), name ?? ""), found);
  }
  return found;
}

for (const page of ["shell", "portlet"]) {
  test(`the page of the ${page} asks for every module it needs at once, and for no other`, () => {
    const html = readFileSync(join(web, page, "index.html"), "utf8");
    const asked = [
      ...html.matchAll(/<(?:link rel="modulepreload" href|script type="module" src)="([^"]+)">/g),
    ].map(([, name]) => name);
    const needed = [...modules(join(web, page, "main.js"))].map((file) => `/${relative(web, file)}`);
    assert.deepEqual(asked.sort(), needed.sort());
  });
}
