// main.js: assembles the shell.
import { find, setText } from "../shared/dom.js";
import { glyph } from "../shared/icons.js";
import { mod, shortcutOf } from "../shared/keys.js";
import { currentTheme, followTheme, toggleTheme } from "../shared/theme.js";
import { createActions } from "./actions.js";
import { mountAnnouncer } from "./announcer.js";
import { createCommands } from "./commands.js";
import { giveFocusBackBy } from "./dialog.js";
import { mountDrawer } from "./drawer.js";
import { createFocus } from "./focus.js";
import { mountFooter } from "./footer.js";
import { watchRowLock } from "./row-lock.js";
import { mountInbox } from "./inbox.js";
import { mountNarrow } from "./narrow.js";
import { mountNotices } from "./notices.js";
import { countWorking, listFinished, listNeeds } from "./needs-you.js";
import { createNotifier } from "./notifier.js";
import { mountOffline } from "./offline.js";
import { mountPortlets } from "./portlets.js";
import { mountResize } from "./resize.js";
import { watchSeen } from "./mark-seen.js";
import { openSettings } from "./settings.js";
import { mountSheet } from "./sheet.js";
import { createSocket } from "./socket.js";
import { createStore } from "./store.js";
import { mountTabBar } from "./tab-bar.js";
import { mountToasts } from "./toasts.js";
import { mountTree } from "./tree.js";
import { driveTree } from "./tree-keys.js";
import { createWorkspace } from "./workspace.js";

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */

const byId = (/** @type {string} */ id) => find(document, `#${id}`);
const app = byId("app");
const store = createStore();
const workspace = createWorkspace(() => store.announce());
const focus = createFocus({
  sidebar: byId("sidebar"),
  rail: byId("rail"),
  topBar: byId("top-bar"),
  tabBar: byId("tab-bar"),
  sheet: byId("sheet"),
},
  {
    enterTabs: () => tabBar.focusCurrent(),
    enterSession: (target) => portlets.sendToCurrent({ kind: "focus", target }),
  });
const drawer = mountDrawer(app, {
  sidebar: byId("sidebar"),
  covered: [find(document, ".skip-link"), ...["rail", "top-bar", "tab-bar", "notices", "sheet"].map(byId)],
  focus,
});
const toast = mountToasts(byId("toasts"), { giveBack: focus.giveBack });
const setNotices = mountNotices(byId("notices"));
const socket = createSocket({ onFrame, opened, lost });
const offline = mountOffline(byId("offline"), { tryNow: socket.tryNow });
const request = socket.request;
const actions = createActions({
  store,
  workspace,
  toast,
  request,
  open: (id) => commands.open(id),
  focusProject: (id) => tree.focusProject(id),
  added: (id) => commands.projectAdded(id),
  prepared: () => portlets.whenPrepared(),
});
const portlets = mountPortlets(byId("portlets"), {
  store,
  request,
  onMessage: (sessionId, message) => commands.fromPortlet(sessionId, message),
});
const resize = mountResize(app, byId("separator"));
const rowLock = watchRowLock(byId("lists"), () => {
  tree.release();
  inbox.update(needs, finished);
});
const inbox = mountInbox({ waiting: byId("inbox"), finished: byId("finished") }, {
  store,
  rowLock,
  activeSession: workspace.current,
  open: (id) => commands.open(id),
  reconnect: actions.reconnect,
  seen: actions.seen,
});
const tree = mountTree(byId("tree"), { store, rowLock, activeSession: workspace.current });
const footer = mountFooter(byId("footer"), {
  store,
  reconnect: actions.reconnect,
  refresh: actions.refreshAgents,
  changeTheme,
});
const sheet = mountSheet(byId("sheet"), {
  store,
  workspace,
  actions,
  show: (id) => portlets.show(id),
  isReady: portlets.isReady,
  open: (id) => commands.open(id),
  newSession: (id) => commands.newSession(id),
});
const narrow = mountNarrow({ rail: byId("rail"), topBar: byId("top-bar") }, {
  store,
  current: workspace.current,
  openCount: () => workspace.order().length,
});
const announce = mountAnnouncer(byId("announcer"), (cliType) => store.agent(cliType)?.name ?? cliType);
const notifier = createNotifier({
  place: (session) => store.project(session.projectId)?.name ?? "",
  open: (id) => commands.open(id),
});
const seen = watchSeen({ session: () => store.state.sessions.get(workspace.current() ?? ""), seen: actions.seen });
const commands = createCommands({
  store,
  workspace,
  actions,
  portlets,
  focus,
  drawer,
  resize,
  toast,
  changeTheme,
  unseen: () => [...needs, ...finished],
  focusProject: (id) => tree.focusProject(id),
  focusNewSession: (id) => tree.focusNewSession(id),
  settings: showSettings,
});
const tabBar = mountTabBar(byId("tab-bar"), commands.tabActions);
giveFocusBackBy((from) => void (sheet.focusStart() || focus.giveBack(from)));
driveTree(byId("tree"), { ...tree, ...commands.treeActions });

/** The Settings dialog opened last. @type {ReturnType<typeof openSettings> | null} */
let settings = null;
/** What needs the user. @type {import("./needs-you.js").Need[]} */
let needs = [];
/** What is finished and unread. @type {import("./needs-you.js").Need[]} */
let finished = [];
/** The lists have arrived since the last connect: only then may tabs of unknown sessions be closed. */
let synced = false;
let shown = /** @type {string | null} */ (null);
/** After a load or a reconnect, focus goes to the active session unless something else has it. */
let refocus = true;
/** The version of the server that served this page. @type {string | undefined} */
let pageVersion;

store.subscribe((changes) => focus.keep(() => draw(changes)));

/** @param {import("./store.js").Changes} changes */
function draw(changes) {
  const watched = document.visibilityState === "visible" ? workspace.current() : null;
  needs = listNeeds(store.state.busy.values(), store.state.agents, watched);
  finished = listFinished(store.state.busy.values(), watched);
  if (synced) workspace.keepOnly((id) => store.state.sessions.has(id));
  portlets.update(workspace.order());
  const current = workspace.current();
  tree.update(current === shown ? changes : { ...changes, sessions: withSessions(changes.sessions, [shown, current]) });
  inbox.update(needs, finished);
  if (changes.agents) footer.update();
  sheet.update(needs, finished);
  tabBar.update(tabViews());
  narrow.update(needs, finished);
  app.toggleAttribute("data-no-projects", store.state.projects.length === 0);
  byId("no-projects").hidden = !store.state.ready || store.state.projects.length > 0;
  showWorking();
  showTitle();
  const turned = [...changes.turned].flatMap((id) => store.state.sessions.get(id) ?? []);
  announce(turned);
  notifier.notify(turned);
  seen();
  if (synced && (changes.agents || changes.projects)) portlets.contextChanged();
  // After the frame, so that it forces no layout.
  if (current !== shown && current !== null) setTimeout(tree.reveal, 0, current);
  shown = current;
  if (synced && refocus) {
    refocus = false;
    if (focus.isLost()) portlets.sendToCurrent({ kind: "focus", target: "input" });
    else if (document.activeElement?.matches("iframe")) portlets.sendToCurrent({ kind: "focus", target: "lost" });
  }
}

/** @param {Set<string>} projects @param {(string | null)[]} sessions */
function withSessions(projects, sessions) {
  const owners = sessions.map((id) => store.state.sessions.get(id ?? "")?.projectId).filter((id) => id !== undefined);
  return new Set([...projects, ...owners]);
}

function tabViews() {
  const current = workspace.current();
  const start = workspace.currentStart();
  const open = workspace.order().flatMap((id) => {
    const session = store.state.sessions.get(id);
    return session
      ? [{
        id,
        title: session.title,
        cliType: session.cliType,
        attention: session.attention,
        current: id === current,
        provisional: false,
        controls: portlets.frameId(id),
      }]
      : [];
  });
  const starting = workspace.starts().map(({ key, cliType }) => ({
    id: key,
    title: "New Session",
    cliType,
    attention: /** @type {const} */ ("starting"),
    current: key === start?.key,
    provisional: true,
    controls: "page",
  }));
  return [...open, ...starting];
}

function showWorking() {
  const working = countWorking(store);
  const node = byId("working-count");
  if (node.dataset.count === String(working)) return;
  node.dataset.count = String(working);
  node.replaceChildren(...(working ? [glyph("working", { size: 12 }), `${working} working`] : []));
}

function showTitle() {
  const title = needs.length ? `(${needs.length}) Liminal Builder` : "Liminal Builder";
  if (document.title !== title) document.title = title;
  const link = document.querySelector('link[rel="icon"]');
  const href = needs.length ? "/shared/favicon-waiting.svg" : "/shared/favicon.svg";
  if (link?.getAttribute("href") !== href) link?.setAttribute("href", href);
}

/** @param {boolean} [addAgent] */
function showSettings(addAgent = false) {
  settings = openSettings({
    notifier,
    themeChanged,
    version: store.state.version,
    hasDisplay: store.state.hasDisplay,
    request,
    addAgent,
  });
}

/** @param {ServerFrame} frame */
function onFrame(frame) {
  const agentsBefore = frame.type === "agent:list" ? describeAgents() : "";
  store.apply(frame);
  if (frame.type === "agent:list" && describeAgents() !== agentsBefore) settings?.agentsChanged();
  if (frame.type === "error") return frame.sessionId
    ? portlets.deliver(frame)
    : toast(frame.message, { kind: "error", ...(frame.detail ? { detail: frame.detail } : {}) });
  if (frame.type === "server:hello") greet(frame);
  if (frame.type === "server:notices") showServerNotices(frame.notices);
  if (frame.type === "project:added") void actions.listSessions(frame.project.id);
  if (frame.type === "session:archived") workspace.close(frame.sessionId);
  if (frame.type === "agent:status" && frame.status === "connected") workspace.connected(frame.cliType);
  if (frame.type === "project:removed") {
    for (const id of workspace.order()) if (!store.state.sessions.has(id)) workspace.close(id);
  }
  portlets.deliver(frame);
}

/** A key of the agent list that changes with its agents, not with their states. */
const describeAgents = () => store.state.agents
  .map(({ cliType, name, program, installed }) => [cliType, name, program, installed].join("\t"))
  .join("\n");

/** @param {Extract<ServerFrame, { type: "server:hello" }>} hello */
function greet({ version, notices }) {
  pageVersion ??= version;
  showServerNotices(notices);
  const reload = { label: "Reload", run: () => location.reload() };
  setNotices("version", version === pageVersion
    ? []
    : [{ text: `Liminal Builder ${version} is running. This page is version ${pageVersion}.`, action: reload }]);
}

/** @param {string[]} notices */
const showServerNotices = (notices) => setNotices("server", notices.map((text) => ({ text })));

async function opened() {
  offline.hide();
  portlets.setOnline(true);
  try {
    await actions.resync();
  } catch {
    return; // The connection was lost again; the next one starts over.
  }
  synced = true;
  portlets.resync();
  portlets.prepare(workspace.order());
  store.announce();
}

/** @param {boolean} refused */
function lost(refused) {
  synced = false;
  refocus = true;
  store.lost();
  portlets.setOnline(false);
  offline.show(refused);
}

function changeTheme() {
  toggleTheme();
  themeChanged();
}

function themeChanged() {
  footer.themeChanged();
  portlets.sendToAll({ kind: "theme", theme: currentTheme() });
}

followTheme(themeChanged);
footer.themeChanged();
setText(find(document, '[data-key="palette"]'), mod("K"));
addEventListener("keydown", (event) => {
  const shortcut = shortcutOf(event);
  if (shortcut && commands.run(shortcut.name, shortcut.index)) event.preventDefault();
  else if (event.key === "Escape" && !event.defaultPrevented) commands.escape(event.repeat);
});
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element ? event.target.closest("[data-command]") : null;
  if (button instanceof HTMLElement) commands.run(button.dataset.command ?? "", undefined, button);
});
setInterval(() => {
  tree.redraw();
  inbox.update(needs, finished);
  sheet.update(needs, finished);
}, 60_000);
setInterval(() => {
  if (workspace.currentStart()) sheet.update(needs, finished);
}, 200);
addEventListener("resize", () => narrow.update(needs, finished));
document.addEventListener("visibilitychange", () => store.announce());
socket.connect();
