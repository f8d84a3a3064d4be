// Sets the theme before the first paint. A plain script, because a module would run after it; it only reads the one
// key that storage.js writes.
(() => {
  let chosen = null;
  try {
    chosen = JSON.parse(localStorage.getItem("liminal:theme") ?? "null");
  } catch {
    // A browser without storage follows the system.
  }
  const light = matchMedia("(prefers-color-scheme: light)").matches;
  const theme = chosen === "light" || chosen === "dark" ? chosen : light ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
})();
