// Liminal Builder has no service worker. This one takes the place of another program's, and removes itself.
addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(remove()));

async function remove() {
  await registration.unregister();
  for (const client of await clients.matchAll({ type: "window" })) await client.navigate(client.url).catch(() => null);
}
