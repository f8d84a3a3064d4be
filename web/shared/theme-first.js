// Sets the theme before the first paint. A plain script, because a module would run after it; it only reads the one
// key that storage.js writes.
(() => {
  let stored = null;
  try {
    stored = JSON.parse(localStorage.getItem("liminal:theme") ?? "null");
  } catch {
    // A browser without storage follows the system.
  }
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  const theme = stored === "light" || stored === "dark" ? stored : light ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
})();
