import assert from "node:assert/strict";
import test from "node:test";
import { listenToPortlets, listenToShell, sendToPortlet } from "../../shared/bus.js";

/** A window of the page: its listeners and its location. */
const page = /** @type {any} */ (globalThis);
const shell = { name: "the shell" };
const stranger = { name: "a stranger" };
const HOME = "http://127.0.0.1:3000";
/** @type {((event: object) => void)[]} */
let ears = [];

/** @param {any} parent */
function openPage(parent) {
  ears = [];
  Object.assign(page, {
    location: { origin: HOME },
    window: page,
    parent: parent ?? page,
    addEventListener: (/** @type {string} */ _, /** @type {any} */ ear) => ears.push(ear),
  });
}

/**
 * The messages received from these events.
 * @param {(received: (...words: any[]) => void) => void} listen
 * @param {object[]} events
 */
function receivedBy(listen, events) {
  /** @type {any[]} */
  const received = [];
  listen((...args) => received.push(args));
  for (const event of events) for (const ear of ears) ear(event);
  return received;
}

test("a portlet receives messages from the shell of its own page only", () => {
  openPage(shell);
  const data = { kind: "visible", visible: true };
  const good = { origin: HOME, source: shell, data };
  const foreign = [
    { ...good, origin: "http://evil.example" },
    { ...good, origin: "null" },
    { ...good, origin: "http://127.0.0.1:3001" },
    { ...good, source: stranger },
    { ...good, source: null },
    { ...good, source: page },
  ];
  assert.deepEqual(receivedBy(listenToShell, [...foreign, good]), [[data]]);
});

test("a page that is not a portlet receives no shell messages, not even its own", () => {
  openPage(null);
  assert.deepEqual(
    receivedBy(listenToShell, [{ origin: HOME, source: page, data: { kind: "visible", visible: true } }]),
    [],
  );
});

test("the shell receives messages from its own origin only, with their source", () => {
  openPage(null);
  const data = { kind: "ready" };
  const good = { origin: HOME, source: stranger, data };
  const foreign = [{ ...good, origin: "http://localhost:3000" }, { ...good, origin: "" }, { ...good, source: null }];
  assert.deepEqual(receivedBy(listenToPortlets, [...foreign, good]), [[stranger, data]]);
});

test("a message of the wrong shape is dropped", () => {
  openPage(shell);
  const shapes = [
    null,
    undefined,
    "ready",
    7,
    [],
    {},
    { kind: "no such" },
    { kind: "constructor" },
    { kind: "__proto__" },
    { kind: "request", id: "1", message: {} },
    { kind: "request", id: 1, message: null },
    { kind: "report", text: 7 },
    { kind: ["ready"] },
    { kind: "server", messages: {} },
    { kind: "server", messages: null },
    { kind: "server", messages: "x" },
  ];
  for (const data of shapes) {
    assert.deepEqual(
      receivedBy(listenToPortlets, [{ origin: HOME, source: stranger, data }]),
      [],
      JSON.stringify(data),
    );
    assert.deepEqual(receivedBy(listenToShell, [{ origin: HOME, source: shell, data }]), [], JSON.stringify(data));
  }
});

test("a message to a portlet names its origin, so that another page in its place receives nothing", () => {
  openPage(null);
  /** @type {any[]} */
  const sent = [];
  sendToPortlet(
    /** @type {any} */ ({ postMessage: (/** @type {any[]} */ ...args) => sent.push(args) }),
    { kind: "online", online: true },
  );
  assert.deepEqual(sent, [[{ kind: "online", online: true }, HOME]]);
});
