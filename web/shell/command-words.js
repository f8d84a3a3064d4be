// command-words.js: a command line as a person types it, split into its words. Quotes work as in a shell; nothing is expanded.

/**
 * @param {string} line
 * @returns {string[] | null} `null` where a quote is not closed.
 */
export function splitWords(line) {
  /** @type {string[]} */
  const words = [];
  let word = "";
  let isWord = false;
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const letter = line.charAt(at);
    if (quote) {
      if (letter === quote) quote = "";
      else if (letter === "\\" && quote === '"' && /["\\$`]/.test(line.charAt(at + 1))) word += line.charAt((at += 1));
      else word += letter;
    } else if (letter === "'" || letter === '"') {
      quote = letter;
      isWord = true;
    } else if (letter === "\\" && at + 1 < line.length) {
      word += line.charAt((at += 1));
      isWord = true;
    } else if (/\s/.test(letter)) {
      if (isWord) words.push(word);
      word = "";
      isWord = false;
    } else {
      word += letter;
      isWord = true;
    }
  }
  if (quote) return null;
  if (isWord) words.push(word);
  return words;
}

/** Words as a person would type them. @param {string[]} words */
export const joinWords = (words) => words.map((word) => (/^[\w./:=@+,%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
