// demo.js: the words about the built-in demo agent, so that nobody takes it for a model.

/** @param {string} cliType */
export const isDemo = (cliType) => cliType === "demo";

/** Where agents are offered. */
export const DEMO_NOTE = "Built in, no subscription: shows how everything looks";
