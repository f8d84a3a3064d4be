// Writes docs/test-cases.md: which test covers which acceptance case. Test titles name their cases.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const TITLE = /^\s*test\((?:"|`)(.+?)(?:"|`), /gm;
/** @type {Map<string, string[]>} */
const cases = new Map();
for (const folder of ["browser", "unit"]) {
  const place = new URL(`./${folder}/`, import.meta.url);
  for (const file of readdirSync(place).filter((name) => /\.(spec|test)\.js$/.test(name)).sort()) {
    for (const [, title = ""] of readFileSync(new URL(file, place), "utf8").matchAll(TITLE)) {
      for (const [id] of title.matchAll(/TC-\d\.\d[a-f]?/g)) {
        const words = title.replace(/^(TC-\d\.\d[a-f]?(, )?)+: /, "");
        cases.set(id, [...(cases.get(id) ?? []), `${words} (\`${folder}/${file}\`)`]);
      }
    }
  }
}
const rows = [...cases].sort(([a], [b]) => a.localeCompare(b)).map(([id, tests]) => `| ${id} | ${tests.join("<br>")} |`);
writeFileSync(new URL("../../docs/test-cases.md", import.meta.url), `# Acceptance cases and the tests of the page\n\nWritten by \`npm run cases\` in \`web/\` from the titles of the tests in \`web/tests/\`.\n\n| case | test |\n| --- | --- |\n${rows.join("\n")}\n`);
console.log(`${cases.size} cases`);
