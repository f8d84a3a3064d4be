// Writes docs/test-cases.md: which test covers which acceptance case. Test titles name their cases.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const TITLE = /^\s*test\((?:"|`)(.+?)(?:"|`), /gm;
export const DOCUMENT = new URL("../../docs/test-cases.md", import.meta.url);

/** How many cases each criterion has: `1.2: 4` is TC-1.2a to TC-1.2d. */
const CRITERIA = {
  1.1: 2, 1.2: 4, 1.3: 2, 1.4: 2,
  2.1: 3, 2.2: 6, 2.3: 2, 2.4: 3, 2.5: 2,
  3.1: 2, 3.2: 2, 3.3: 3, 3.4: 1, 3.5: 2, 3.6: 3, 3.7: 3,
  4.1: 2, 4.2: 2, 4.3: 2, 4.4: 3, 4.5: 2, 4.6: 2, 4.7: 1,
  5.1: 2, 5.2: 4, 5.3: 1, 5.4: 1, 5.5: 2, 5.6: 2,
  7.2: 3, 8.1: 3, 8.2: 2, 8.3: 2,
};
export const CASES = Object.entries(CRITERIA).flatMap(([criterion, count]) => [..."abcdef"].slice(0, count).map((letter) => `TC-${criterion}${letter}`)).sort();

/** The tests that name each case, by folder and file. @returns {Map<string, { folder: string, file: string, words: string }[]>} */
export function findTests() {
  /** @type {ReturnType<typeof findTests>} */
  const found = new Map();
  for (const folder of ["browser", "unit"]) {
    const place = new URL(`./${folder}/`, import.meta.url);
    for (const file of readdirSync(place).filter((name) => /\.(spec|test)\.js$/.test(name)).sort()) {
      for (const [, title = ""] of readFileSync(new URL(file, place), "utf8").matchAll(TITLE)) {
        for (const [id] of title.matchAll(/TC-\d\.\d[a-f]?/g)) {
          const words = title.replace(/^(TC-\d\.\d[a-f]?(, )?)+: /, "");
          found.set(id, [...(found.get(id) ?? []), { folder, file, words }]);
        }
      }
    }
  }
  return found;
}

export function describe() {
  const rows = [...findTests()].sort(([a], [b]) => a.localeCompare(b)).map(([id, tests]) => `| ${id} | ${tests.map(({ folder, file, words }) => `${words} (\`${folder}/${file}\`)`).join("<br>")} |`);
  return `# Acceptance cases and the tests of the page\n\nWritten by \`npm run cases\` in \`web/\` from the titles of the tests in \`web/tests/\`.\n\n| case | test |\n| --- | --- |\n${rows.join("\n")}\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  writeFileSync(DOCUMENT, describe());
  console.log(`${CASES.length} cases`);
}
