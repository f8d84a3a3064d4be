// settings-openers.js: the part of Settings for the editor and the terminal. Stored by the server, for all windows.
import { h, setAttribute, setText } from "../shared/dom.js";
import { NO_DISPLAY } from "../shared/open-in.js";
import { asError } from "./actions.js";

/** @typedef {import("../shared/protocol.js").ServerSettings} ServerSettings */
/** @typedef {import("../shared/protocol.js").OpenTarget} OpenTarget */
/** @typedef {import("../shared/protocol.js").ClientMessage} ClientMessage */
/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/** @typedef {(message: ClientMessage) => Promise<ServerFrame>} Request */

/** @type {[OpenTarget, string][]} */
const FIELDS = [["editor", "Editor"], ["terminal", "Terminal"]];

/** @param {{ hasDisplay: boolean, request: Request }} deps */
export function createOpenersSection({ hasDisplay, request }) {
  const fields = FIELDS.map(([target, label]) => createField(target, label, (command) => void save(target, command)));
  const note = h("p", { class: "setting-note", id: "openers-note" }, hasDisplay
    ? "Commands run as written here, without a shell. {dir} is replaced by the directory. Without {dir}, an editor "
      + "gets the directory as its last argument, and a terminal starts in it."
    : `${NO_DISPLAY}, so nothing can be opened.`);
  const section = h("fieldset", { class: "setting-openers" },
    h("legend", {}, "Open in"),
    ...fields.map(({ root }) => root),
    note);

  /** @param {ServerSettings} settings */
  function show(settings) {
    for (const field of fields) field.show(settings[field.target]);
  }

  /** @param {OpenTarget} target @param {string} command */
  async function save(target, command) {
    const field = fields.find((one) => one.target === target);
    try {
      const answer = await request({ type: "settings:set", [target]: command });
      if (answer.type === "settings:current") show(answer.settings);
      field?.report("Saved", false);
    } catch (reason) {
      field?.report(asError(reason).message, true);
    }
  }

  request({ type: "settings:get" }).then((answer) =>
    answer.type === "settings:current" && show(answer.settings), () => {});
  return section;
}

/** @param {OpenTarget} target @param {string} label @param {(command: string) => void} save */
function createField(target, label, save) {
  const input = h("input", {
    type: "text",
    class: "setting-text mono",
    name: `opener-${target}`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": `opener-${target}-status openers-note`,
  });
  const status = h("span", { class: "setting-status", id: `opener-${target}-status`, role: "status" });
  let saved = "";
  const keep = () => {
    if (input.value.trim() !== saved) save(input.value.trim());
  };
  input.addEventListener("change", keep);
  input.addEventListener("input", () => {
    setText(status, "");
    setAttribute(input, "aria-invalid", null);
  });
  // Enter saves the text; by default it would close the dialog.
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    keep();
  });
  return {
    target,
    root: h("label", { class: "setting-line" }, h("span", {}, label), input, status),
    /** @param {import("../shared/protocol.js").OpenerSetting} setting */
    show({ command, defaultCommand }) {
      saved = command;
      if (document.activeElement !== input || input.value.trim() === command) input.value = command;
      setAttribute(input, "placeholder", defaultCommand ?? "None found");
    },
    /** @param {string} text @param {boolean} wrong */
    report(text, wrong) {
      setText(status, text);
      setAttribute(input, "aria-invalid", wrong ? "true" : null);
      setAttribute(status, "data-wrong", wrong);
    },
  };
}
