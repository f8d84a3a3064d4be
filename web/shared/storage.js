// storage.js: the only owner of localStorage and sessionStorage. A value that cannot be read is as if it were not there.

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
 * @param {unknown} value `null` forgets it.
 */
export function save(key, value) {
  try {
    if (value === null) localStorage.removeItem(`liminal:${key}`);
    else localStorage.setItem(`liminal:${key}`, JSON.stringify(value));
  } catch {
    // Storage that is full or switched off costs only what would have been remembered.
  }
}

/**
 * @param {string} key
 * @returns {Record<string, unknown>}
 */
export function loadRecord(key) {
  const value = load(key);
  return value && typeof value === "object" && !Array.isArray(value) ? /** @type {Record<string, unknown>} */ (value) : {};
}

/**
 * Hears when another window keeps something else under a key.
 * @param {string} key
 * @param {() => void} changed
 */
export function watch(key, changed) {
  addEventListener("storage", (event) => {
    if (event.key === `liminal:${key}` || event.key === null) changed();
  });
}

/** Words that were read and sent away; forgotten with the browser's tab. */
export const dismissed = {
  /** @returns {string[]} */
  read() {
    try {
      const words = JSON.parse(sessionStorage.getItem("liminal:dismissed") ?? "[]");
      return Array.isArray(words) ? words.filter((word) => typeof word === "string") : [];
    } catch {
      return [];
    }
  },
  /** @param {string} words */
  add(words) {
    try {
      sessionStorage.setItem("liminal:dismissed", JSON.stringify([...new Set([...dismissed.read(), words])]));
    } catch {
      // Then they are shown once more after a reload.
    }
  },
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
