// group-items.js: the order and the groups in which the items of a turn are shown. Pure.
import { isExploring } from "./tool-labels.js";

/** @typedef {import("./session.js").Item} Item */
/** @typedef {Extract<Item, { type: "tool_call" }>} ToolItem */
/** @typedef {{ item: Item } | { group: ToolItem[] }} Step */

/** This many quiet calls in a row fold into one line. */
const GROUP_MIN = 3;

/**
 * @param {Item[]} items
 * @returns {Step[]}
 */
export function groupItems(items) {
  /** @type {Step[]} */
  const steps = [];
  /** @type {ToolItem[]} */
  let run = [];
  const closeRun = () => {
    if (run.length >= GROUP_MIN) steps.push({ group: run });
    else steps.push(...run.map((item) => ({ item })));
    run = [];
  };
  for (const item of items) {
    if (item.type === "tool_call" && isExploring(item)) {
      run.push(item);
      continue;
    }
    closeRun();
    if (!isEmpty(item)) steps.push({ item });
  }
  closeRun();
  return steps;
}

/** A finished text item without text. @param {Item} item */
const isEmpty = (item) =>
  item.type !== "tool_call" && item.text === "" && item.html.length === 0 && item.status === "complete";
