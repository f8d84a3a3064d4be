// banner.js: what went wrong with this session, what is safe, and what to do.
import { copyText } from "../shared/clipboard.js";
import { closest, h, reconcile } from "../shared/dom.js";
import { glyph, icon } from "../shared/icons.js";
import { agentName, connectionOf } from "./connection.js";

/**
 * @typedef {{
 *   key: string,
 *   kind: "danger" | "warn",
 *   title: string,
 *   text: string,
 *   detail?: string,
 *   command?: string,
 *   action?: { name: string, label: string, primary: boolean },
 * }} Banner
 */
/** @typedef {import("./session.js").Session} Session */

/**
 * @param {HTMLElement} root
 * @param {{ session: Session, reconnect: () => void, retry: () => void }} deps
 */
export function mountBanners(root, { session, reconnect, retry }) {
  let drawn = "";
  let retryAt = 0;
  let lastStatus = /** @type {unknown} */ (null);

  root.addEventListener("click", (event) => {
    const button = closest(event, "[data-do]");
    switch (button?.dataset.do) {
      case "reconnect": return reconnect();
      case "retry": return retry();
      case "dismiss": return session.set({ error: null });
      case "copy": return void copyText(button.dataset.text ?? "", button);
      case "details": {
        const open = button.getAttribute("aria-expanded") !== "true";
        button.setAttribute("aria-expanded", String(open));
        const detail = button.closest(".banner")?.querySelector(".banner-detail");
        if (detail instanceof HTMLElement) detail.hidden = !open;
      }
    }
  });

  function draw() {
    const { status } = session.state.context ?? {};
    if (status !== lastStatus) {
      lastStatus = status;
      retryAt = status?.retryInMs === undefined ? 0 : Date.now() + status.retryInMs;
    }
    const banners = bannersOf(session.state, Math.max(0, retryAt - Date.now()));
    const now = JSON.stringify(banners);
    if (now === drawn) return;
    const same = [...root.children].map((node) => /** @type {HTMLElement} */ (node).dataset.key).join()
      === banners.map(({ key }) => key).join();
    drawn = now;
    // Only the countdown changed: update the text, keep the buttons and focus.
    if (same) banners.forEach((banner, at) => fill(/** @type {HTMLElement} */ (root.children[at]), banner));
    else reconcile(root, banners.map(create));
  }
  return { draw, tick: () => session.state.context?.status?.retryInMs !== undefined && draw() };
}

/** @param {HTMLElement} node @param {Banner} banner */
function fill(node, banner) {
  const [title, text] = [...(node.querySelector(".banner-text")?.children ?? [])];
  if (title && title.textContent !== banner.title) title.textContent = banner.title;
  if (text && text.textContent !== banner.text) text.textContent = banner.text;
}

/** @param {Banner} banner */
function create(banner) {
  return h("div", { class: "banner", role: "alert", "data-kind": banner.kind, "data-key": banner.key },
    banner.key === "reconnecting"
      ? glyph("reconnecting", { size: 16 })
      : icon(banner.key === "copy" ? "info" : "unplug"),
    h("div", { class: "banner-text" }, h("strong", {}, banner.title), h("span", {}, banner.text)),
    banner.detail ? h("button", {
      class: "button",
      type: "button",
      "data-kind": "ghost",
      "data-do": "details",
      "aria-expanded": "false",
    }, "Details") : null,
    banner.action ? h("button", {
      class: "button",
      type: "button",
      "data-kind": banner.action.primary ? "primary" : "secondary",
      "data-do": banner.action.name,
    }, banner.action.primary ? icon("refresh") : null, banner.action.label) : null,
    banner.command
      ? h("div", { class: "command-line banner-command" },
        h("code", {}, banner.command),
        h("button", {
          class: "button",
          type: "button",
          "data-kind": "ghost",
          "data-do": "copy",
          "data-text": banner.command,
        }, icon("copy"), h("span", { "data-copy-label": true }, "Copy")))
      : null,
    banner.detail ? h("pre", { class: "banner-detail", tabindex: 0, hidden: true }, banner.detail) : null);
}

/**
 * @param {Session["state"]} state
 * @param {number} retryMs
 * @returns {Banner[]}
 */
function bannersOf({ context, failed, error, loaded, online }, retryMs) {
  if (!context) return [];
  const name = agentName(context);
  const { status } = context;
  const connection = connectionOf({ context, online });
  const detail = status?.detail ? { detail: status.detail } : {};
  if (connection === "reconnecting") {
    const next = retryMs ? `, next in ${Math.ceil(retryMs / 1000)}s` : "";
    const attempt = status?.attempt
      ? `Attempt ${status.attempt} of ${status.attemptsMax ?? "5"}${next}`
      : "Nothing written so far is lost.";
    return [{
      key: "reconnecting",
      kind: "warn",
      title: `Connection to ${name} lost. Reconnecting...`,
      text: attempt,
      ...detail,
      action: { name: "reconnect", label: "Reconnect now", primary: false },
    }];
  }
  // Nothing is shown yet: the reason comes first.
  if (failed && !loaded) return [loadFailure(failed, "No conversation could be shown.", context)];
  if (connection === "disconnected" && context.session.hangs) {
    return [{
      key: "hangs",
      kind: "danger",
      title: `${name} hangs.`,
      text: error?.message
        ?? "It did not stop when asked to. Nothing written so far is lost; the conversation can go on after a restart.",
      action: { name: "reconnect", label: "Restart", primary: true },
    }];
  }
  if (connection === "disconnected") {
    return [{
      key: "lost",
      kind: "danger",
      title: `Connection to ${name} lost.`,
      text: error?.message ?? "Nothing written so far is lost; the conversation can go on after reconnecting.",
      ...detail,
      ...install(error, context),
      action: { name: "reconnect", label: "Reconnect", primary: true },
    }];
  }
  if (failed) return [loadFailure(failed, "What is shown may not be the newest.", context)];
  if (error) {
    return [{
      key: "error",
      kind: "danger",
      title: error.message,
      text: "Nothing written so far is lost.",
      ...(error.detail ? { detail: error.detail } : {}),
      ...install(error, context),
      action: { name: "dismiss", label: "Dismiss", primary: false },
    }];
  }
  if (context.session.continuity === "copy") {
    return [{
      key: "copy",
      kind: "warn",
      title: "Context not restored.",
      text: `This is a copy of the conversation. ${name} does not remember it: your next message starts a new context.`,
    }];
  }
  return [];
}

/**
 * @param {import("../shared/protocol.js").ErrorMessage} failed
 * @param {string} text
 * @param {import("../shared/bus.js").Context} context
 * @returns {Banner}
 */
function loadFailure(failed, text, context) {
  return {
    key: "failed",
    kind: "danger",
    title: failed.message,
    text,
    ...(failed.detail ? { detail: failed.detail } : {}),
    ...install(failed, context),
    action: { name: "retry", label: "Retry", primary: true },
  };
}

/**
 * @param {import("../shared/protocol.js").ErrorMessage | null} error
 * @param {import("../shared/bus.js").Context} context
 */
function install(error, context) {
  const command = error?.code === "AGENT_NOT_INSTALLED" ? (error.installHint ?? context.agent?.installHint) : undefined;
  return command ? { command } : {};
}
