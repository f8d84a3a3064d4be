// live-output.js: which agents send a command's output while it runs. We know it once an agent has done so.
import { loadRecord, save } from "../shared/storage.js";

const KEY = "live-output";
/** @type {Set<string>} */
const known = new Set();

/** @param {string} cliType */
export const sendsLiveOutput = (cliType) => known.has(cliType) || loadRecord(KEY)[cliType] === true;

/** @param {string} cliType */
export function noteLiveOutput(cliType) {
  if (known.has(cliType)) return;
  known.add(cliType);
  save(KEY, { ...loadRecord(KEY), [cliType]: true });
}
