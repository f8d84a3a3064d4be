// command-line.js: splits a typed command line into program and arguments, and joins them again. Quotes work as in a
// shell; nothing is expanded.

/**
 * @param {string} line
 * @returns {string[] | null} `null` if a quote is not closed.
 */
export function splitCommandLine(line) {
  /** @type {string[]} */
  const parts = [];
  let part = "";
  let isPart = false;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const letter = line.charAt(at);
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"' && /["\\$`]/.test(line.charAt(at + 1))) part += line.charAt((at += 1));
      else part += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      isPart = true;
    } else if (letter === "\\" && at + 1 < line.length) {
      part += line.charAt((at += 1));
      isPart = true;
    } else if (/\s/.test(letter)) {
      if (isPart) parts.push(part);
      part = "";
      isPart = false;
    } else {
      part += letter;
      isPart = true;
    }
  }
  if (quote) return null;
  if (isPart) parts.push(part);
  return parts;
}

/** A command line as a person would type it. @param {string[]} parts */
export const joinCommandLine = (parts) => parts.map(quoted).join(" ");

/** @param {string} part */
const quoted = (part) => (/^[\w./:=@+,%-]+$/.test(part) ? part : `'${part.replaceAll("'", "'\\''")}'`);
