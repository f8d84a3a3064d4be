// trusted-types.js: the policies under which text may become HTML or a script URL. The page's
// Content-Security-Policy names each of them and refuses every other way. Browsers without Trusted Types get the text
// as it is.

/**
 * @typedef {{ html: (text: string) => string, scriptUrl: (url: string) => string }} Trusted
 * The result is an object that only the browser can create; its type here is text.
 */

/**
 * @param {string} name As in the policy of `server/src/headers.rs`. Each can be made once.
 * @param {{
 *   html?: (text: string) => string,
 *   scriptUrl?: (url: string) => string,
 * }} rules Each returns what may pass, or throws.
 * @returns {Trusted}
 */
export function createPolicy(name, { html = refuse, scriptUrl = refuse }) {
  const factory = /** @type {any} */ (globalThis).trustedTypes;
  if (!factory) return { html, scriptUrl };
  const policy = factory.createPolicy(name, { createHTML: html, createScriptURL: scriptUrl });
  return { html: (text) => policy.createHTML(text), scriptUrl: (url) => policy.createScriptURL(url) };
}

/** @returns {never} */
function refuse() {
  throw new TypeError("This policy does not allow that.");
}
