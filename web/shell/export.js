// export.js: the dialog that saves a session's conversation as a file.
import { h } from "../shared/dom.js";
import { openDialog } from "./dialog.js";

/** @typedef {import("../shared/protocol.js").SessionSummary} SessionSummary */
/** @typedef {"md" | "json" | "html"} Format */

/** @type {{ value: Format, label: string, note: string }[]} */
const FORMATS = [
  { value: "md", label: "Markdown", note: "Text to read, edit or paste" },
  { value: "json", label: "JSON", note: "All that is recorded, for programs" },
  { value: "html", label: "HTML", note: "One file that opens in any browser" },
];
const NOT_RUNNING = "Liminal Builder is not running.";

/** @param {string} sessionId @param {Format} format @param {boolean} redact */
export const exportAddress = (sessionId, format, redact) =>
  `/api/session/${encodeURIComponent(sessionId)}/export?format=${format}${redact ? "&redact=true" : ""}`;

/**
 * The file name that the server suggests, without any directory.
 * @param {string | null} disposition The header `Content-Disposition`.
 * @param {string} otherwise
 */
export function fileName(disposition, otherwise) {
  const [, encoded] = /filename\*=UTF-8''([^;]+)/i.exec(disposition ?? "") ?? [];
  const [, plain] = /filename="?([^";]+)"?/i.exec(disposition ?? "") ?? [];
  const name = (decoded(encoded) ?? plain)?.trim().replace(/^.*[\\/]/, "");
  return name || otherwise;
}

/** @param {string | undefined} text */
function decoded(text) {
  try {
    return text && decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** @param {{ session: SessionSummary, exported: (name: string) => void }} deps */
export function openExport({ session, exported }) {
  const stop = new AbortController();
  const choices = FORMATS.map(({ value, label, note }, at) => h("label", { class: "export-choice" },
    h("input", { type: "radio", name: "format", value, checked: at === 0 }),
    h("span", {}, label), h("small", {}, note)));
  const redact = h("input", { type: "checkbox", name: "redact" });
  const error = h("p", { class: "export-error", role: "alert", hidden: true });
  const submit = h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Export");
  const form = h("form", { method: "dialog" },
    h("h2", {}, "Export conversation"),
    h("p", { class: "truncate", dir: "auto" }, session.title),
    h("fieldset", {}, h("legend", { class: "visually-hidden" }, "Format"), ...choices),
    h("label", { class: "export-redact" }, redact, h("span", {}, "Mask keys, tokens and e-mail addresses")),
    error,
    h("div", { class: "dialog-actions" },
      h("button", { class: "button", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
      submit));
  const dialog = openDialog({
    label: "Export conversation",
    className: "text-dialog export",
    closed: () => stop.abort(),
  }, form);

  async function save() {
    const format = /** @type {Format} */ (new FormData(form).get("format"));
    submit.disabled = true;
    submit.textContent = "Exporting…";
    error.hidden = true;
    const problem = await download(session, format, redact.checked, stop.signal).then((name) => {
      dialog.close();
      exported(name);
      return null;
    }, (/** @type {Error} */ reason) => reason);
    if (!problem || stop.signal.aborted) return;
    error.textContent = problem.message;
    error.hidden = false;
    submit.disabled = false;
    submit.textContent = "Export";
    submit.focus();
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void save();
  });
  form.querySelector('[data-do="cancel"]')?.addEventListener("click", () => dialog.close());
  choices[0]?.querySelector("input")?.focus();
}

/**
 * Fetches the file first, so that an error can be shown, and then hands it to the browser to save.
 * @param {SessionSummary} session
 * @param {Format} format
 * @param {boolean} redact
 * @param {AbortSignal} signal
 * @returns {Promise<string>} The name of the file.
 */
async function download(session, format, redact, signal) {
  const address = exportAddress(session.id, format, redact);
  const response = await fetch(address, { cache: "no-store", signal }).catch(() => null);
  if (!response?.ok) {
    const answer = await response?.json().catch(() => null);
    throw new Error(answer?.error?.message ?? (response ? "Could not export the conversation." : NOT_RUNNING));
  }
  const name = fileName(response.headers.get("content-disposition"), `conversation.${format}`);
  const file = await response.blob().catch(() => {
    throw new Error("The export ended early. Try again.");
  });
  const href = URL.createObjectURL(file);
  h("a", { href, download: name }).click();
  // The browser reads the file after the click; a minute is enough for it to begin.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
  return name;
}
