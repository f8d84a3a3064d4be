// Writes docs/test-cases.md: which test covers which acceptance case of which document.
//
// docs/test-cases.json lists every case of both documents, `M` (the feature specification) and `E` (the epic), which
// use the same ids. It names the Rust tests of a case, or the decision that supersedes it. Tests of the page name their
// cases in their titles: of 1 to 5 those of `M`, of 6 to 8 those of `E`.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const TITLE = /^\s*test\((?:"|`)(.+?)(?:"|`), /gm;
const ROOT = new URL("../../", import.meta.url);
export const DOCUMENT = new URL("docs/test-cases.md", ROOT);
const DOCUMENTS = { M: "feature specification", E: "epic" };

/** @typedef {{ document: "M" | "E", id: string, title: string, tests?: string[], superseded?: string }} Case */

/** @type {Case[]} */
export const CASES = JSON.parse(readFileSync(new URL("docs/test-cases.json", ROOT), "utf8"));

/** @param {{ document: string, id: string }} of */
export const key = ({ document, id }) => `${document} ${id}`;

/**
 * The tests of the page that name each case, by folder and file.
 * @returns {Map<string, { folder: string, file: string, text: string }[]>}
 */
export function findTests() {
  /** @type {ReturnType<typeof findTests>} */
  const found = new Map();
  for (const folder of ["browser", "unit"]) {
    const place = new URL(`./${folder}/`, import.meta.url);
    for (const file of readdirSync(place).filter((name) => /\.(spec|test)\.js$/.test(name)).sort()) {
      for (const [, title = ""] of readFileSync(new URL(file, place), "utf8").matchAll(TITLE)) {
        for (const [id] of title.matchAll(/TC-\d\.\d[a-g]?/g)) {
          const text = title.replace(/^(TC-\d\.\d[a-g]?(, )?)+: /, "");
          const of = key({ document: Number(id[3]) <= 5 ? "M" : "E", id });
          found.set(of, [...(found.get(of) ?? []), { folder, file, text }]);
        }
      }
    }
  }
  return found;
}

/** Is there a Rust test of this name? @param {string} test `path::name` */
export function isRustTest(test) {
  const [path = "", name = ""] = test.split("::");
  const file = new URL(path, ROOT);
  if (!/^[a-z0-9_]+$/.test(name) || !existsSync(file)) return false;
  const lines = readFileSync(file, "utf8").split("\n");
  const at = lines.findIndex((line) => new RegExp(`^\\s*(async )?fn ${name}\\(`).test(line));
  // Between the attribute and the name there may be other attributes and comments, but no other function.
  const before = lines.slice(0, Math.max(at, 0)).reverse();
  const attributes = before.slice(0, before.findIndex((line) => !/^\s*(#\[|\/\/|$)/.test(line)));
  return at > 0
    && attributes.some((line) => /^\s*#\[(tokio::)?test\b/.test(line))
    && !attributes.some((line) => /#\[ignore/.test(line));
}

/** The cells of a row for its case. @param {Case} of @param {ReturnType<typeof findTests>} found */
function tests(of, found) {
  if (of.superseded) return `superseded: ${of.superseded}`;
  const page = (found.get(key(of)) ?? []).map(({ folder, file, text }) => `${text} (\`${folder}/${file}\`)`);
  const rust = (of.tests ?? []).map((test) => {
    const [path = "", name = ""] = test.split("::");
    return `${name.replaceAll("_", " ")} (\`${path.replace("crates/", "")}\`)`;
  });
  return [...page, ...rust].join("<br>");
}

export function describe() {
  const found = findTests();
  const sections = Object.entries(DOCUMENTS).map(([document, name]) => {
    const rows = CASES.filter((of) => of.document === document)
      .map((of) => `| ${key(of)} | ${of.title} | ${tests(of, found)} |`);
    return `## ${document}: the ${name}\n\n| case | what | tests |\n| --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return `# Acceptance cases and their tests

Written by \`npm run cases\` in \`web/\` from the titles of the tests in \`web/tests/\` \
and from \`docs/test-cases.json\`.
Both documents use the same ids; \`M\` and \`E\` keep them apart.

${sections.join("\n")}`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  writeFileSync(DOCUMENT, describe());
  console.log(`${CASES.length} cases`);
}
