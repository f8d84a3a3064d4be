// theme.js: which theme is shown, and the choice behind it.
import { load, save } from "./storage.js";

/** @typedef {"dark" | "light"} Theme */

const system = matchMedia("(prefers-color-scheme: light)");

/** @returns {Theme} */
export const currentTheme = () => (document.documentElement.dataset.theme === "light" ? "light" : "dark");

/** @param {Theme} theme */
export function showTheme(theme) {
  if (document.documentElement.dataset.theme !== theme) document.documentElement.dataset.theme = theme;
}

/**
 * Follows the system until the user chooses.
 * @param {(theme: Theme) => void} changed
 */
export function followSystem(changed) {
  system.addEventListener("change", () => {
    if (load("theme") !== null) return;
    showTheme(system.matches ? "light" : "dark");
    changed(currentTheme());
  });
}

/** @typedef {Theme | "system"} Choice */

/** @returns {Choice} */
export function themeChoice() {
  const chosen = load("theme");
  return chosen === "dark" || chosen === "light" ? chosen : "system";
}

/** @param {Choice} choice */
export function chooseTheme(choice) {
  const own = system.matches ? "light" : "dark";
  showTheme(choice === "system" ? own : choice);
  save("theme", choice === "system" ? null : choice);
}

/** Chooses the other theme; a choice equal to the system's is no choice. */
export function toggleTheme() {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  chooseTheme(theme === (system.matches ? "light" : "dark") ? "system" : theme);
}
