// tool-labels.js: how a tool call is named. Pure.
import { projectPath } from "../shared/paths.js";

/** @typedef {import("../shared/protocol.js").Upsert} Upsert */
/** @typedef {Extract<Upsert, { type: "tool_call" }>} ToolCall */
/** @typedef {"running" | "done" | "failed" | "interrupted"} ToolState */

/** @type {Record<string, [string, string, string]>} Icon, verb while it runs, verb afterwards. */
const KINDS = {
  read: ["file", "Read", "Read"],
  edit: ["pencil", "Edit", "Edit"],
  delete: ["trash", "Delete", "Deleted"],
  move: ["move", "Move", "Moved"],
  search: ["search", "Search", "Searched"],
  execute: ["terminal", "Run", "Ran"],
  think: ["bulb", "Think", "Thought"],
  fetch: ["globe", "Fetch", "Fetched"],
  switch_mode: ["switch", "Switch mode", "Switched mode"],
  agent: ["bot", "Agent", "Agent"],
  other: ["wrench", "", ""],
};

/** @param {ToolCall} call @returns {ToolState} */
export function stateOf(call) {
  if (call.tool?.interrupted) return "interrupted";
  if (call.status === "error" || call.toolOutputIsError) return "failed";
  return call.status === "complete" ? "done" : "running";
}

/** @param {ToolCall} call */
export const kindOf = (call) => call.tool?.kind ?? "other";

/** Calls that are shown as one quiet line. @param {ToolCall} call */
export function isQuiet(call) {
  const state = stateOf(call);
  if (state === "failed" || state === "interrupted") return false;
  return !["edit", "delete", "move", "execute", "agent"].includes(kindOf(call));
}

/** Finished calls that fold into a group. @param {ToolCall} call */
export const isExploring = (call) => ["read", "search", "fetch"].includes(kindOf(call)) && stateOf(call) === "done";

/**
 * @param {ToolCall} call
 * @param {{ root: string, home: string }} place
 * @returns {{ icon: string, verb: string, target: string, isCode: boolean }}
 */
export function labelOf(call, { root, home }) {
  const kind = kindOf(call);
  const [icon, now, then] = KINDS[kind] ?? ["wrench", "", ""];
  const creates = kind === "edit" && /^(write|create)/i.test(call.toolName);
  // An interrupted call was not completed.
  const isDone = stateOf(call) === "done" || stateOf(call) === "failed";
  const verb = creates ? "Create" : (isDone ? then : now) || call.toolName;
  const text = (/** @type {string} */ name) =>
    (typeof call.toolArguments[name] === "string" ? /** @type {string} */ (call.toolArguments[name]) : "");
  const path = call.tool?.locations?.[0]?.path
    ?? call.sections?.find((section) => section.path)?.path
    ?? (text("file_path") || text("path"));
  const command = call.tool?.command ?? text("command");
  if (kind === "execute" && command) return { icon, verb, target: command, isCode: true };
  if (["read", "edit", "delete", "move"].includes(kind) && path) {
    return { icon, verb, target: projectPath(path, root, home), isCode: true };
  }
  const query = text("pattern") || text("query") || text("url");
  if (query && (kind === "search" || kind === "fetch")) return { icon, verb, target: query, isCode: true };
  const own = call.tool?.title ?? "";
  // "Edit x.ts" after our own "Edit" would repeat the verb.
  const title = kind !== "other" && own.toLowerCase().startsWith(`${verb.toLowerCase()} `)
    ? own.slice(verb.length + 1)
    : own;
  if (title && title !== verb) {
    return { icon, verb: kind === "other" ? title : verb, target: kind === "other" ? "" : title, isCode: false };
  }
  return { icon, verb, target: "", isCode: false };
}

/**
 * "5 files, 2 searches".
 * @param {ToolCall[]} calls
 */
export function groupLabel(calls) {
  const count = (/** @type {string} */ kind) => calls.filter((call) => kindOf(call) === kind).length;
  const part = (/** @type {number} */ n, /** @type {string} */ one, /** @type {string} */ many) =>
    (n ? [`${n} ${n === 1 ? one : many}`] : []);
  return [
    ...part(count("read"), "file", "files"),
    ...part(count("search"), "search", "searches"),
    ...part(count("fetch"), "page", "pages"),
  ].join(", ");
}

/**
 * How long it took, or has been running, in ms.
 * @param {ToolCall & { startedAt: string, changedAt: string }} call
 * @param {number} now
 */
export function timeOf(call, now) {
  const start = Date.parse(call.tool?.startedAt ?? call.startedAt);
  const end = stateOf(call) === "running" ? now : Date.parse(call.tool?.endedAt ?? call.changedAt);
  return Math.max(0, end - start);
}

const PERMISSION = {
  allowed_automatically: "allowed automatically",
  allowed_once: "Allowed once",
  allowed_always: "Always allowed",
  rejected: "Rejected",
  cancelled: "Not decided",
};

/** Which lines of a file were read: "1–184". @param {ToolCall} call */
export function linesRead(call) {
  const file = kindOf(call) === "read" && call.sections?.length === 1 ? call.sections[0] : undefined;
  if (file?.kind !== "file") return "";
  const first = Number(/<span class="num">(\d+)</.exec(file.html)?.[1]);
  const count = file.html.split('class="line').length - 1 + (file.cutLines ?? 0);
  return first > 0 && count > 0 ? (count === 1 ? String(first) : `${first}–${first + count - 1}`) : "";
}

/** How permission was decided. @param {ToolCall} call */
export const permissionLabel = (call) => (call.tool?.permission ? PERMISSION[call.tool.permission.decision] : "");
