// money.js: amounts in US dollars, as agents report them.

/** Rounded to cents; a smaller amount is shown as less than a cent. @param {number} usd */
export function money(usd) {
  if (usd > 0 && usd < 0.01) return "<$0.01";
  return `$${usd.toFixed(2)}`;
}
