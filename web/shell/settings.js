// settings.js: the Settings dialog: preferences of this browser, agents, openers, and signed-in browsers.
import { h } from "../shared/dom.js";
import { chooseTheme, themeChoice } from "../shared/theme.js";
import { createBrowsers } from "./browsers.js";
import { hint, openDialog } from "./dialog.js";
import { createAgentsSection } from "./settings-agents.js";
import { createOpenersSection } from "./settings-openers.js";

/** @type {["system" | "dark" | "light", string][]} */
const THEMES = [["system", "System"], ["dark", "Dark"], ["light", "Light"]];

/**
 * @param {{
 *   notifier: ReturnType<typeof import("./notifier.js").createNotifier>,
 *   themeChanged: () => void,
 *   version: string,
 *   hasDisplay: boolean,
 *   request: import("./settings-openers.js").Request,
 *   addAgent?: boolean,
 * }} deps `addAgent`: also opens the form for a new agent.
 * @returns {{ agentsChanged: () => void }}
 */
export function openSettings({ notifier, themeChanged, version, hasDisplay, request, addAgent = false }) {
  const themes = THEMES.map(([value, label]) => h("label", { class: "setting-choice" },
    h("input", { type: "radio", name: "theme", value, checked: value === themeChoice() }), label));
  const box = h("input", {
    type: "checkbox",
    name: "notifications",
    checked: notifier.isOn(),
    disabled: !notifier.isPossible(),
    "aria-describedby": "notifications-note",
  });
  const note = h("p", { class: "setting-note", id: "notifications-note", role: "status" }, noteOf(notifier));
  const agents = createAgentsSection({ request });
  const form = h("form", { method: "dialog" },
    h("div", { class: "dialog-body" },
      h("h2", {}, "Settings"),
      h("fieldset", {}, h("legend", {}, "Theme"), ...themes),
      h("fieldset", {},
        h("legend", {}, "Notifications"),
        h("label", { class: "setting-choice" }, box, "Desktop notifications"),
        note),
      agents.root,
      createOpenersSection({ hasDisplay, request }),
      createBrowsers()),
    h("div", { class: "dialog-foot" },
      h("span", {}, version ? `Liminal Builder ${version}` : ""),
      h("button", { class: "button push", type: "submit", "data-kind": "ghost" }, hint(["Esc"], "close"))));
  const dialog = openDialog({ label: "Settings", className: "settings" }, form);
  form.addEventListener("change", async (event) => {
    const input = event.target;
    if (!(input instanceof HTMLInputElement)) return;
    const theme = THEMES.find(([value]) => value === input.value);
    if (input.name === "theme" && theme) {
      chooseTheme(theme[0]);
      themeChanged();
    }
    if (input.name !== "notifications") return;
    await notifier.set(input.checked);
    input.checked = notifier.isOn();
    note.textContent = noteOf(notifier);
  });
  void (addAgent ? agents.add() : agents.load());
  // Another window may have changed the agents.
  return { agentsChanged: () => void (dialog.isConnected && agents.load()) };
}

/** @param {ReturnType<typeof import("./notifier.js").createNotifier>} notifier */
function noteOf(notifier) {
  if (!notifier.isPossible()) return "This browser does not support notifications on this page.";
  if (notifier.isRefused()) return "This browser blocks notifications from this page. Allow them in its settings.";
  return "Shown when a session needs you or is done while this page is not visible.";
}
