// storage.js: the only owner of localStorage and sessionStorage. A value that cannot be read counts as
// missing.

/**
 * @param {string} key
 * @returns {unknown}
 */
export function load(key) {
  try {
    const text = localStorage.getItem(`liminal:${key}`);
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {unknown} value `null` removes it.
 */
export function save(key, value) {
  try {
    if (value === null) localStorage.removeItem(`liminal:${key}`);
    else localStorage.setItem(`liminal:${key}`, JSON.stringify(value));
  } catch {
    // If storage is full or disabled, the value is simply not remembered.
  }
}

/**
 * @param {string} key
 * @returns {Record<string, unknown>}
 */
export function loadRecord(key) {
  const value = load(key);
  return value && typeof value === "object" && !Array.isArray(value)
    ? /** @type {Record<string, unknown>} */ (value)
    : {};
}

/**
 * Calls `changed` when another window stores a value under a key.
 * @param {string} key
 * @param {() => void} changed
 */
export function watch(key, changed) {
  addEventListener("storage", (event) => {
    if (event.key === `liminal:${key}` || event.key === null) changed();
  });
}

/** Values of this window alone: they survive a reload, and no other window changes them. */
export const own = {
  /** @param {string} key @returns {unknown} */
  load(key) {
    try {
      return JSON.parse(sessionStorage.getItem(`liminal:${key}`) ?? "null");
    } catch {
      return null;
    }
  },
  /** @param {string} key @param {unknown} value */
  save(key, value) {
    try {
      sessionStorage.setItem(`liminal:${key}`, JSON.stringify(value));
    } catch {
      // As above.
    }
  },
};

/** Dismissed notices; forgotten when the browser's tab is closed. */
export const dismissed = {
  /** @returns {string[]} */
  read() {
    const texts = own.load("dismissed");
    return Array.isArray(texts) ? texts.filter((text) => typeof text === "string") : [];
  },
  /** @param {string} text */
  add: (text) => own.save("dismissed", [...new Set([...dismissed.read(), text])]),
  /** @param {string} text */
  remove: (text) => own.save("dismissed", dismissed.read().filter((other) => other !== text)),
};

/** The text typed but not sent, per session. */
export const drafts = {
  /** @param {string} sessionId */
  read(sessionId) {
    const draft = loadRecord("drafts")[sessionId];
    return typeof draft === "string" ? draft : "";
  },
  /**
   * @param {string} sessionId
   * @param {string} text
   */
  write(sessionId, text) {
    const { [sessionId]: _, ...rest } = loadRecord("drafts");
    save("drafts", text ? { ...rest, [sessionId]: text } : rest);
  },
};
