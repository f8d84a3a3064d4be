// browsers.js: the list of signed-in browsers in Settings, where each can be revoked.
import { h, reconcile } from "../shared/dom.js";
import { relativeTime } from "../shared/time.js";

/** @typedef {{ id: string, label: string, addedAt: string, lastUsedAt: string, isCurrent: boolean }} Browser */

const AWAY = "Liminal Builder is not running.";

/** Loads the list and shows it. */
export function createBrowsers() {
  const list = h("ul", { class: "browser-list", "aria-label": "Signed-in browsers" });
  const note = h("p", { class: "setting-note", role: "status" });
  const root = h("fieldset", { class: "browsers" }, h("legend", {}, "Browsers"), list, note);

  async function load() {
    const answer = await call("/api/browsers");
    if (!answer.ok) return void (note.textContent = answer.message);
    /** @type {{ isRequired: boolean, browsers: Browser[] }} */
    const { isRequired, browsers } = answer.body;
    // This browser first, then the most recently used.
    browsers.sort((one, other) =>
      Number(other.isCurrent) - Number(one.isCurrent) || other.lastUsedAt.localeCompare(one.lastUsedAt));
    reconcile(list, browsers.map((browser) => row(browser, revoke)));
    note.textContent = isRequired
      ? "Revoking signs a browser out at once. It needs a new link to sign in again."
      : "This server runs with --no-auth: every browser has access.";
  }

  /** @param {string} id */
  async function revoke(id) {
    const answer = await call("/api/browsers/revoke", { id });
    await load();
    if (!answer.ok) note.textContent = answer.message;
    // The focused button was removed with its row.
    if (!root.contains(document.activeElement)) {
      /** @type {HTMLElement | null} */ (root.closest("dialog")?.querySelector('[type="submit"]'))?.focus();
    }
  }

  void load();
  return root;
}

/**
 * @param {Browser} browser
 * @param {(id: string) => Promise<void>} revoke
 */
function row({ id, label, addedAt, lastUsedAt, isCurrent }, revoke) {
  const now = Date.now();
  const ago = (/** @type {string} */ then) =>
    (relativeTime(then, now) === "now" ? "just now" : `${relativeTime(then, now)} ago`);
  const button = h("button", {
    class: "button",
    type: "button",
    "data-kind": "secondary",
    "aria-label": `Revoke ${label}${isCurrent ? ", this browser" : ""}`,
  }, "Revoke");
  let asked = false;
  button.addEventListener("click", () => {
    // Revoking the browser in use needs a second click.
    if (isCurrent && !asked) {
      asked = true;
      button.textContent = "Sign out this browser?";
      button.removeAttribute("aria-label");
      return;
    }
    button.disabled = true;
    void revoke(id);
  });
  return h("li", { "data-browser": id },
    h("span", { class: "browser-name" }, label, isCurrent && h("span", { class: "browser-current" }, "This browser")),
    h("span", { class: "browser-times" }, `Added ${ago(addedAt)} · used ${ago(lastUsedAt)}`),
    button);
}

/**
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<{ ok: true, body: any } | { ok: false, message: string }>}
 */
async function call(path, body) {
  const init = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, { cache: "no-store", ...init }).catch(() => null);
  if (!response) return { ok: false, message: AWAY };
  const answer = await response.json().catch(() => null);
  return response.ok
    ? { ok: true, body: answer }
    : { ok: false, message: answer?.error?.message ?? "Could not load the list." };
}
