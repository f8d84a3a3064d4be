// theme.js: which theme is shown, and the choice behind it.
import { load, save, watch } from "./storage.js";

/** @typedef {"dark" | "light"} Theme */

const system = matchMedia("(prefers-color-scheme: light)");

/** @returns {Theme} */
export const currentTheme = () => (document.documentElement.dataset.theme === "light" ? "light" : "dark");

/** @param {Theme} theme */
export function showTheme(theme) {
  if (document.documentElement.dataset.theme !== theme) document.documentElement.dataset.theme = theme;
}

/**
 * Follows the user's choice, in whichever window it is made, or the system without one.
 * @param {() => void} changed
 */
export function followTheme(changed) {
  const follow = () => {
    const before = currentTheme();
    showTheme(resolveTheme());
    if (currentTheme() !== before) changed();
  };
  system.addEventListener("change", follow);
  watch("theme", follow);
}

/** @typedef {Theme | "system"} Choice */

/** @returns {Choice} */
export function themeChoice() {
  const stored = load("theme");
  return stored === "dark" || stored === "light" ? stored : "system";
}

/** @param {Choice} [choice] @returns {Theme} */
function resolveTheme(choice = themeChoice()) {
  if (choice !== "system") return choice;
  return system.matches ? "light" : "dark";
}

/** @param {Choice} choice */
export function chooseTheme(choice) {
  showTheme(resolveTheme(choice));
  save("theme", choice === "system" ? null : choice);
}

/** Switches to the other theme; a choice equal to the system's is stored as "system". */
export function toggleTheme() {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  chooseTheme(theme === resolveTheme("system") ? "system" : theme);
}
