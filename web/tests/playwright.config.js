import { defineConfig } from "@playwright/test";

export default defineConfig({
  testDir: "./browser",
  outputDir: "../test-results",
  timeout: 90_000,
  expect: { timeout: 20_000 },
  workers: 2,
  fullyParallel: true,
  forbidOnly: Boolean(process.env.CI),
  // scripts/test lists tests that pass only on the retry. This many failures are not flaky tests, so the run stops
  // there.
  retries: process.env.CI === "true" ? 1 : 0,
  maxFailures: process.env.CI === "true" ? 20 : 0,
  reporter: [["list"]],
  use: {
    viewport: { width: 1440, height: 900 },
    colorScheme: "dark",
    locale: "en-GB",
    actionTimeout: 20_000,
    screenshot: "only-on-failure",
    // A trace of every test costs as much as the tests.
    trace: process.env.TRACE ? "retain-on-failure" : "off",
    launchOptions: {
      executablePath: process.env.CHROMIUM_BIN ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
      ],
    },
  },
});
