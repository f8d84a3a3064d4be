// cursor.js: how far a page has received its session, so that it is sent what it missed and nothing else. Pure.

/** @typedef {import("../shared/messages.js").ServerFrame} ServerFrame */
/**
 * `seq` counts within a journal, which outlives the server; `epoch` says which run of a server wrote it.
 * @typedef {{ journalId: string, epoch: number, seq: number }} Cursor
 */

/**
 * The cursor after a message. A history sets it; before that, messages belong to an earlier page or connection.
 * @param {Cursor | null} cursor
 * @param {ServerFrame} frame
 * @param {boolean} joined A history has arrived since the page was loaded and the connection was made.
 * @returns {Cursor | null}
 */
export function advance(cursor, frame, joined) {
  if (frame.type === "session:history") {
    const { journalId, epoch, seq } = frame;
    return { journalId, epoch, seq };
  }
  return cursor && joined && "seq" in frame ? { ...cursor, seq: Math.max(cursor.seq, frame.seq) } : cursor;
}

/**
 * The fields of `session:open`. The server decides whether it can go on from there.
 * @param {Cursor | null} cursor
 * @returns {{ since?: number, epoch?: number, journalId?: string }}
 */
export const openFrom = (cursor) =>
  (cursor ? { since: cursor.seq, epoch: cursor.epoch, journalId: cursor.journalId } : {});
