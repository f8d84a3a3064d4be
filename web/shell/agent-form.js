// agent-form.js: the dialog that defines an agent. It handles fields and errors; the caller saves the definition.
import { closest, h, setAttribute, setText } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { mod } from "../shared/keys.js";
import { splitCommandLine } from "./command-line.js";
import { openDialog } from "./dialog.js";
import { createProbe } from "./probe-result.js";

/** @typedef {import("../shared/protocol.js").AgentDefinition} AgentDefinition */
/** @typedef {import("./socket.js").RequestError["error"]} Failure */
/**
 * `save` returns the error, or `null` if the definition was saved.
 * @typedef {{
 *   definition?: AgentDefinition,
 *   request: import("./settings-openers.js").Request,
 *   save: (definition: AgentDefinition) => Promise<Failure | null>,
 *   closed: () => void,
 * }} FormDeps
 */

/** @param {FormDeps} deps */
export function openAgentForm({ definition, request, save, closed }) {
  const label = definition ? `Edit ${definition.name}` : "Add agent";
  const name = textField("name", "Name", {
    value: definition?.name ?? "",
    placeholder: "Gemini CLI",
    class: "setting-text",
  });
  const command = textField("command", "Command", {
    value: definition?.command ?? "",
    placeholder: "gemini",
    class: "setting-text mono",
  }, "A program in your PATH, or its full path. It must speak the Agent Client Protocol.");
  const split = h("button", { class: "link-button", type: "button", "data-do": "split" },
    "Move the rest to the arguments");
  const splitNote = h("p", { class: "setting-note", hidden: true }, "This looks like a whole command line. ", split);
  command.root.append(splitNote);
  const args = createArguments(definition?.args ?? []);
  const env = createVariables(definition?.env ?? []);
  const probe = createProbe();
  const alert = h("p", { class: "form-error", role: "alert", hidden: true });
  const renamed = h("p", { class: "setting-note", role: "status" });
  name.root.append(renamed);
  const tryIt = h("button", { class: "button", type: "button", "data-kind": "secondary", "data-do": "try" }, "Try it");
  const submit = h("button", { class: "button", type: "submit", "data-kind": "primary" }, "Save");
  const form = h("form", { method: "dialog", novalidate: true, autocomplete: "off" },
    h("div", { class: "dialog-body" },
      h("h2", {}, label),
      name.root,
      command.root,
      args.root,
      env.root,
      probe.root,
      alert),
    h("div", { class: "dialog-foot" },
      tryIt,
      h("button", { class: "button push", type: "button", "data-kind": "ghost", "data-do": "cancel" }, "Cancel"),
      submit));
  const dialog = openDialog({ label, className: "settings agent-form", closed }, form);
  const fields = [name, command, args];
  let busy = false;

  /** @returns {AgentDefinition} */
  const read = () => ({
    name: name.input.value.trim(),
    command: command.input.value.trim(),
    args: args.value(),
    env: env.value(),
  });

  function clearErrors() {
    for (const field of fields) field.report("");
    env.clear();
    alert.hidden = true;
  }

  /** @param {Failure} error */
  function report(error) {
    const field = /^definition\.(\w+)(?:\[(\d+)\](?:\.(\w+))?)?/.exec(error.field ?? "");
    const sentence = sentenceOf(error.message);
    const found = field && fields.find((one) => one.name === field[1]);
    if (field?.[1] === "env") return env.report(Number(field[2] ?? 0), field[3] === "value", sentence);
    if (found) {
      found.report(sentence);
      return found.input.focus();
    }
    setText(alert, error.detail ? `${error.message} ${error.detail}` : error.message);
    alert.hidden = false;
    alert.scrollIntoView({ block: "nearest" });
  }

  /** @param {AgentDefinition} wanted @param {boolean} needsName */
  function isComplete(wanted, needsName) {
    clearErrors();
    if (needsName && !wanted.name) {
      report({ code: "INVALID_MESSAGE", field: "definition.name", message: "Enter a name." });
    } else if (!wanted.command) {
      report({ code: "INVALID_MESSAGE", field: "definition.command", message: "Enter the program that starts it." });
    } else return true;
    return false;
  }

  async function submitForm() {
    const wanted = read();
    if (busy || !isComplete(wanted, true)) return;
    busy = true;
    const error = await save(wanted);
    busy = false;
    if (error) report(error);
    else dialog.close();
  }

  async function runProbe() {
    const wanted = read();
    if (!isComplete(wanted, false)) return probe.clear();
    const refused = await probe.run(request, { type: "agent:probe-definition", definition: wanted });
    if (!refused?.field) return;
    probe.clear();
    report(refused);
  }

  function moveToArguments() {
    const [program, ...rest] = splitCommandLine(command.input.value) ?? [];
    if (!program) return;
    command.input.value = program;
    args.set(rest);
    splitNote.hidden = true;
    args.input.focus();
  }

  form.addEventListener("input", () => {
    clearErrors();
    probe.clear();
    const parts = splitCommandLine(command.input.value.trim());
    splitNote.hidden = !parts || parts.length < 2 || args.input.value !== "";
    const isRenamed = definition !== undefined && name.input.value.trim() !== definition.name.trim();
    setText(renamed, isRenamed
      ? `Sessions of ${definition.name} belong to that name. They can be opened again once an agent has that name.`
      : "");
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void submitForm();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void submitForm();
  });
  form.addEventListener("click", (event) => {
    const pressed = closest(event, "[data-do]")?.dataset.do;
    if (pressed === "cancel") dialog.close();
    if (pressed === "try") void runProbe();
    if (pressed === "split") moveToArguments();
  });
  submit.title = `${mod("Enter")} saves from any field`;
  name.input.focus();
}

/** The server's message about a field, as a sentence under it. @param {string} message */
function sentenceOf(message) {
  const reason = /^Invalid request payload\. \S+ (.*)$/.exec(message)?.[1];
  return reason ? `It ${reason}.` : message;
}

/** @param {string} name @param {string} label @param {Record<string, string>} attributes @param {string} [note] */
function textField(name, label, attributes, note) {
  const input = h("input", {
    type: "text",
    name: `agent-${name}`,
    id: `agent-${name}`,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-describedby": `agent-${name}-error agent-${name}-note`,
    ...attributes,
  });
  return { ...fieldOf(name, label, input, note), input };
}

/** @param {string} name @param {string} label @param {HTMLElement} input @param {string} [note] */
function fieldOf(name, label, input, note) {
  const error = h("p", { class: "form-error", id: `agent-${name}-error`, role: "alert", hidden: true });
  return {
    name,
    root: h("div", { class: "form-field" },
      h("label", { for: `agent-${name}` }, label),
      input,
      error,
      note ? h("p", { class: "setting-note", id: `agent-${name}-note` }, note) : null),
    /** @param {string} sentence */
    report(sentence) {
      setText(error, sentence);
      error.hidden = sentence === "";
      setAttribute(input, "aria-invalid", sentence ? "true" : null);
    },
  };
}

/**
 * One argument per line. An unedited list is returned unchanged, even if an argument does not fit on one line.
 * @param {string[]} known
 */
function createArguments(known) {
  const input = h("textarea", {
    class: "setting-text mono",
    name: "agent-args",
    id: "agent-args",
    rows: 2,
    autocapitalize: "off",
    spellcheck: "false",
    placeholder: "--acp",
    "aria-describedby": "agent-args-error agent-args-note",
  });
  const field = fieldOf("args", "Arguments", input, "One per line, passed as written: no quotes, no shell.");
  let given = known;
  let shown = "";
  /** @param {string[]} list */
  function set(list) {
    given = list;
    input.value = list.join("\n");
    shown = input.value;
    input.rows = Math.min(8, Math.max(2, shown.split("\n").length));
  }
  set(known);
  const typed = () => input.value.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  return { ...field, input, set, value: () => (input.value === shown ? given : typed()) };
}

/**
 * Values may be secrets: they are masked unless they are being edited.
 * @param {import("../shared/protocol.js").EnvVariable[]} known
 */
function createVariables(known) {
  const list = h("ul", { class: "variables", "aria-label": "Environment variables" });
  const error = h("p", { class: "form-error", id: "agent-env-error", role: "alert", hidden: true });
  const add = h("button", { class: "button", type: "button", "data-kind": "ghost" }, icon("plus"), "Add variable");
  /** @type {{ root: HTMLElement, name: HTMLInputElement, value: HTMLInputElement, given: string, shown: string }[]} */
  let rows = [];

  /** @param {string} name @param {string} given */
  function append(name, given) {
    const attributes = { autocapitalize: "off", spellcheck: "false", "aria-describedby": "agent-env-error" };
    const nameInput = h("input", {
      type: "text",
      class: "setting-text mono",
      "aria-label": "Variable",
      placeholder: "API_KEY",
      autocomplete: "off",
      value: name,
      ...attributes,
    });
    const value = h("input", {
      type: "password",
      class: "setting-text mono",
      "aria-label": "Value",
      autocomplete: "new-password",
      ...attributes,
    });
    value.value = given;
    value.addEventListener("focus", () => (value.type = "text"));
    value.addEventListener("blur", () => (value.type = "password"));
    const remove = h("button", {
      class: "icon-button",
      type: "button",
      "aria-label": "Remove this variable",
      title: "Remove this variable",
    }, icon("close"));
    const row = { root: h("li", {}, nameInput, value, remove), name: nameInput, value, given, shown: value.value };
    remove.addEventListener("click", () => {
      const at = rows.indexOf(row);
      rows = rows.filter((other) => other !== row);
      row.root.remove();
      (rows[at]?.name ?? rows[at - 1]?.name ?? add).focus();
      list.dispatchEvent(new Event("input", { bubbles: true }));
    });
    rows.push(row);
    list.append(row.root);
    return row;
  }

  /** Rows that are not empty. */
  const filled = () => rows.filter(({ name, value }) => name.value.trim() !== "" || value.value !== "");
  for (const { name, value } of known) append(name, value);
  add.addEventListener("click", () => append("", "").name.focus());
  return {
    root: h("div", { class: "form-field", role: "group", "aria-labelledby": "agent-env-label" },
      h("span", { class: "form-label", id: "agent-env-label" }, "Environment"),
      list,
      error,
      add),
    value: () => filled().map(({ name, value, given, shown }) => ({
      name: name.value.trim(),
      value: value.value === shown ? given : value.value,
    })),
    clear() {
      error.hidden = true;
      for (const { name, value } of rows) for (const input of [name, value]) setAttribute(input, "aria-invalid", null);
    },
    /** @param {number} index @param {boolean} isValue @param {string} sentence */
    report(index, isValue, sentence) {
      setText(error, sentence);
      error.hidden = false;
      const row = filled()[index];
      const input = isValue ? row?.value : row?.name;
      if (!input) return;
      setAttribute(input, "aria-invalid", "true");
      input.focus();
    },
  };
}
