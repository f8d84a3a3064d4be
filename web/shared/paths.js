// paths.js: paths as people read them. Pure.

/**
 * A path with the home directory as `~`.
 * @param {string} path
 * @param {string} home
 */
export function shortPath(path, home) {
  if (home && path === home) return "~";
  return home && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/**
 * A path as seen from a project: relative inside it, short outside.
 * @param {string} path
 * @param {string} root
 * @param {string} home
 */
export function projectPath(path, root, home) {
  if (root && path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  return shortPath(path, home);
}

/** The last part of a path. @param {string} path */
export const baseName = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

/** The name of the directory a path lies in. @param {string} path */
export const parentName = (path) => baseName(path.replace(/\/+$/, "").split("/").slice(0, -1).join("/") || "/");

/** The home directory as typed; an empty path field stands for it. */
export const HOME = "~/";

/**
 * The path that a text means: absolute, or below the home directory. Shells and file managers quote copied paths.
 * @param {string} text
 */
export function pathOf(text) {
  const trimmed = text.trim();
  const path = /^(["'])([/~].*)\1$/.exec(trimmed)?.[2] ?? fromAddress(trimmed) ?? trimmed;
  return path === "" || path.startsWith("/") || path.startsWith("~") ? path : HOME + path;
}

/** The path in `file:///srv/my%20code`, as file managers copy it. @param {string} text */
function fromAddress(text) {
  try {
    return text.startsWith("file:///") ? decodeURIComponent(new URL(text).pathname) : null;
  } catch {
    return null;
  }
}
