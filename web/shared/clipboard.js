// clipboard.js: copies text and says so on the button for a moment.

const SHOWN_MS = 1500;

/**
 * @param {string} text
 * @param {HTMLElement} [button] Its `[data-copy-label]` part, or itself, says "Copied" meanwhile.
 * @returns {Promise<boolean>}
 */
export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    return false;
  }
  if (button && button.dataset.copied === undefined) {
    const label = button.querySelector("[data-copy-label]");
    const words = label?.textContent ?? "";
    button.dataset.copied = "";
    if (label) label.textContent = "Copied";
    setTimeout(() => {
      delete button.dataset.copied;
      if (label) label.textContent = words;
    }, SHOWN_MS);
  }
  return true;
}
