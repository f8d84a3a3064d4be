// clipboard.js: copies text and briefly shows on the button whether that worked.

const SHOWN_MS = 1500;

/**
 * @param {string} text
 * @param {HTMLElement} [button] Its `[data-copy-label]` part shows the result.
 * @returns {Promise<boolean>}
 */
export async function copyText(text, button) {
  const copied = (await copyByPermission(text)) || copyBySelection(text);
  if (button && button.dataset.copied === undefined) {
    const label = button.querySelector("[data-copy-label]");
    const before = label?.textContent ?? "";
    button.dataset.copied = String(copied);
    if (label) label.textContent = copied ? "Copied" : "Could not copy";
    setTimeout(() => {
      delete button.dataset.copied;
      if (label) label.textContent = before;
    }, SHOWN_MS);
  }
  return copied;
}

/**
 * Copies text that is still loading. The copy must start at once to count as a user action.
 * @param {Promise<string>} promised
 * @returns {Promise<boolean>}
 */
export async function copyPromised(promised) {
  try {
    await navigator.clipboard.write([
      new ClipboardItem({ "text/plain": promised.then((text) => new Blob([text], { type: "text/plain" })) }),
    ]);
    return true;
  } catch {
    const text = await promised;
    // The browser refuses if the page did not have focus at the start.
    window.focus();
    return copyText(text);
  }
}

/** @param {string} text */
async function copyByPermission(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * For pages without clipboard access, such as over plain HTTP from another machine.
 * @param {string} text
 */
function copyBySelection(text) {
  const back = document.activeElement;
  const selection = getSelection();
  const ranges = Array.from({ length: selection?.rangeCount ?? 0 }, (_, at) =>
    /** @type {Selection} */ (selection).getRangeAt(at));
  const field = document.createElement("textarea");
  field.className = "visually-hidden";
  field.value = text;
  // Elements outside an open dialog cannot be selected.
  (back?.closest("dialog") ?? document.body).append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  selection?.removeAllRanges();
  for (const range of ranges) selection?.addRange(range);
  if (back instanceof HTMLElement) back.focus({ preventScroll: true });
  return copied;
}
