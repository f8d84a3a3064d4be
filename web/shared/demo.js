// demo.js: texts about the built-in demo agent, so that nobody mistakes it for a model.

/** @param {string} cliType */
export const isDemo = (cliType) => cliType === "demo";

/** Shown in lists of agents. */
export const DEMO_NOTE = "Built in, no subscription: shows how everything looks";
