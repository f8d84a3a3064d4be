// restart.spec.js: a page that is open while the server restarts receives what it missed and nothing else.
import { addProject, current, expect, finished, newSession, routeSocket, send, sessionRow, test } from "./app.js";

/** @typedef {import("@playwright/test").FrameLocator} FrameLocator */
/** @typedef {import("@playwright/test").Page} Page */

/**
 * Records what passes between a page that is yet to load and its server, and can cut the connection.
 * @param {Page} page
 */
async function watchSocket(page) {
  const watched = {
    /** The messages of the present connection. @type {any[]} */
    sent: [],
    /** @type {any[]} */
    received: [],
    /** While true, every connection is closed at once. */
    cut: false,
    /** @type {(() => void)[]} */
    closers: [],
    /** Replaces a message of the server, or drops it by `null`. @type {(frame: any) => any} */
    change: (frame) => frame,
  };
  await routeSocket(page, (socket) => {
    watched.sent = [];
    watched.received = [];
    if (watched.cut) return void socket.close();
    const server = socket.connectToServer();
    watched.closers.push(() => void Promise.all([socket.close(), server.close()]).catch(() => {}));
    socket.onMessage((data) => {
      watched.sent.push(JSON.parse(String(data)));
      server.send(data);
    });
    server.onMessage((data) => {
      const frame = watched.change(JSON.parse(String(data)));
      if (!frame) return;
      watched.received.push(frame);
      socket.send(JSON.stringify(frame));
    });
  });
  return {
    sentOf: (/** @type {string} */ type) => watched.sent.filter((frame) => frame.type === type),
    receivedOf: (/** @type {string} */ type) => watched.received.filter((frame) => frame.type === type),
    setChange: (/** @type {(frame: any) => any} */ change) => void (watched.change = change),
    cutOff() {
      watched.cut = true;
      for (const close of watched.closers.splice(0)) close();
    },
    letIn: () => void (watched.cut = false),
  };
}

/**
 * Everything a reader has: place, selection, draft, open folds. Counts from now on what is removed from the
 * conversation, and which nodes are replaced.
 * @param {FrameLocator} frame
 */
async function readerAt(frame) {
  await frame.locator("textarea").fill("a draft");
  const before = await frame.locator("#log").evaluate((log) => {
    const own = /** @type {any} */ (window);
    own.shownNodes = [...document.querySelectorAll("#turns [data-item]")];
    own.removedNodes = 0;
    new MutationObserver((changes) => {
      for (const { removedNodes } of changes) own.removedNodes += removedNodes.length;
    }).observe(/** @type {Node} */ (document.querySelector("#turns")), { childList: true, subtree: true });
    log.dispatchEvent(new WheelEvent("wheel", { deltaY: -100 }));
    log.scrollTop = Math.round((log.scrollHeight - log.clientHeight) / 2);
    const text = [...document.querySelectorAll(".message")].find((node) => node.getBoundingClientRect().top > 100);
    getSelection()?.selectAllChildren(/** @type {Node} */ (text));
    return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve({
      top: log.scrollTop,
      selected: String(getSelection()),
    }))));
  });
  return async () => {
    await expect(frame.locator("textarea")).toHaveValue("a draft");
    const after = await frame.locator("#log").evaluate((log) => ({
      top: log.scrollTop,
      selected: String(getSelection()),
      removed: /** @type {any} */ (window).removedNodes,
      connected: /** @type {any} */ (window).shownNodes.every((/** @type {Node} */ node) => node.isConnected),
    }));
    expect(after).toEqual({ ...before, removed: 0, connected: true });
  };
}

/** @param {Page} page @param {import("./app.js").App} app */
async function readSession(page, app) {
  await page.goto(app.link);
  await addProject(page, app.directory("ferry"));
  const frame = await newSession(page, "ferry");
  for (const text of ["long answer", "long again", "hello"]) {
    await send(frame, text);
    await finished(frame);
  }
  return frame;
}

/** The page is connected again and has its history. @param {Page} page @param {FrameLocator} frame */
async function isBack(page, frame) {
  await expect(page.locator("#offline")).toBeHidden();
  await expect(frame.locator("#session")).not.toHaveAttribute("data-stale");
}

test("a page goes on from its cursor: what it shows stays, and what it missed is added", async (
  { app, page, quiet },
) => {
  const socket = await watchSocket(page);
  // A journal that outlives the server.
  socket.setChange((frame) => (frame.type === "session:history" ? { ...frame, journalId: "j1", epoch: 1 } : frame));
  const frame = await readSession(page, app);
  const known = await frame.locator(".user-turn").last().getAttribute("data-item");
  const seq = Math.max(...socket.receivedOf("session:upsert").map((upsert) => upsert.seq),
    ...socket.receivedOf("session:turn").map((turn) => turn.seq));
  const upsert = socket.receivedOf("session:upsert").find(({ payload }) => payload.itemId === known);
  const unchanged = await readerAt(frame);
  quiet.serverMayGo = true;
  // The new server answers from the journal: one turn was added while the page was away.
  socket.setChange((frame) => (frame.type !== "session:history" ? frame : {
    ...frame,
    journalId: "j1",
    epoch: 2,
    since: seq,
    seq: seq + 9,
    more: false,
    entries: [{ ...upsert.payload, itemId: "missed", turnId: "missed-turn", content: "What was missed" }],
    turns: [{ turnId: "missed-turn", status: "cancelled" }],
  }));
  await app.restart();
  await expect(frame.getByText("What was missed")).toHaveCount(1);
  await isBack(page, frame);
  expect(socket.sentOf("session:open")).toHaveLength(1);
  expect(socket.sentOf("session:open")[0]).toMatchObject({ since: seq, epoch: 1, journalId: "j1" });
  await expect(frame.locator(".user-text")).toHaveText(["long answer", "long again", "hello", "What was missed"]);
  await expect(frame.locator(".turn-end")).toHaveText("Stopped");
  await unchanged();
  // From there it goes on once more, in the epoch of the new server.
  await app.restart();
  await expect.poll(() => socket.sentOf("session:open")[0])
    .toMatchObject({ since: seq + 9, epoch: 2, journalId: "j1" });
});

test("a whole history of the same journal keeps the older parts that are shown, and their place", async (
  { app, page, quiet },
) => {
  const socket = await watchSocket(page);
  socket.setChange((frame) => (frame.type === "session:history" ? { ...frame, journalId: "j1", epoch: 1 } : frame));
  const frame = await readSession(page, app);
  const turns = frame.locator(".turn");
  await expect(turns).toHaveCount(3);
  const unchanged = await readerAt(frame);
  const upserts = socket.receivedOf("session:upsert").map(({ payload }) => payload);
  const html = await frame.locator(".message > .block").last().innerHTML();
  const answer = upserts.findLast(({ origin }) => origin === "agent");
  const newest = [
    upserts.findLast(({ origin }) => origin === "user"),
    { ...answer, content: "Hello from the agent.", contentFrom: 0, blocks: { from: 0, keep: 0, html: [html] } },
  ];
  quiet.serverMayGo = true;
  socket.setChange((frame) => {
    if (frame.type !== "session:history") return frame;
    const { since: _, ...whole } = frame;
    return { ...whole, journalId: "j1", epoch: 2, more: true, entries: newest };
  });
  await app.restart();
  await isBack(page, frame);
  await expect(frame.locator(".user-text")).toHaveText(["long answer", "long again", "hello"]);
  await unchanged();
});

test("a page open during a restart is sent what it missed and nothing else", async ({ app, page, browser, quiet }) => {
  test.slow();
  const socket = await watchSocket(page);
  const frame = await readSession(page, app);
  const unchanged = await readerAt(frame);
  quiet.serverMayGo = true;
  for (const signal of /** @type {const} */ (["SIGTERM", "SIGKILL"])) {
    await app.stop(signal);
    await app.start();
    await isBack(page, frame);
    const [open] = socket.sentOf("session:open");
    expect(open).toMatchObject({ since: expect.any(Number), epoch: expect.any(Number), journalId: expect.any(String) });
    expect(open.journalId, "a journal has a name").not.toBe("");
    const [history] = socket.receivedOf("session:history");
    expect(history, "it goes on from the cursor").toMatchObject({ since: open.since, journalId: open.journalId });
    expect(history.epoch).toBeGreaterThanOrEqual(open.epoch);
    expect(history.entries, "nothing was missed").toEqual([]);
    await unchanged();
  }
  // Another browser goes on with the conversation while this one is away, and the server restarts after that.
  socket.cutOff();
  await expect(page.locator("#offline")).toBeVisible();
  const elsewhere = await browser.newContext();
  const other = await elsewhere.newPage();
  await other.goto(app.link);
  await sessionRow(other, "long answer").click();
  await send(current(other), "hello from elsewhere");
  await finished(current(other));
  await elsewhere.close();
  await app.restart();
  socket.letIn();
  await expect(frame.getByText("hello from elsewhere")).toHaveCount(1);
  await isBack(page, frame);
  const [history] = socket.receivedOf("session:history");
  expect(history.since).toBe(socket.sentOf("session:open")[0].since);
  expect(history.entries.map((/** @type {any} */ entry) => entry.content)).toEqual([
    "hello from elsewhere",
    "Hello from the agent.",
  ]);
  await expect(frame.locator(".user-text")).toHaveText([
    "long answer",
    "long again",
    "hello",
    "hello from elsewhere",
  ]);
  await unchanged();
});
