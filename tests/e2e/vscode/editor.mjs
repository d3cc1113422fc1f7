// Starts a real VS Code (code-server) in scratch folders and opens it in a headless browser.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A machine with other work takes minutes for what is done in seconds: no limit is met by a slow one. */
export const PATIENCE_MS = 600_000;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const CHROMIUM_ARGUMENTS = [
  "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

const QUIET_SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.layoutControl.enabled": false,
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.commandCenter.enabled": false,
  "chat.disableAIFeatures": true,
  "window.commandCenter": false,
  "window.menuBarVisibility": "compact",
  "window.restoreWindows": "none",
  "editor.fontSize": 14,
  "editor.minimap.enabled": false,
  "editor.stickyScroll.enabled": false,
  "editor.occurrencesHighlight": "off",
  "breadcrumbs.enabled": false,
  "extensions.ignoreRecommendations": true,
  "files.autoSave": "afterDelay",
  "git.enabled": false,
  "security.workspace.trust.startupPrompt": "never",
  "telemetry.telemetryLevel": "off",
  // Its rows are then elements that can be read.
  "terminal.integrated.gpuAcceleration": "off",
  "update.mode": "none",
};

/** A free port of this machine. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

/** Runs code-server's own command line to its end. */
async function runCodeServer(entry, args, environment) {
  const child = spawn(process.execPath, [entry, ...args], { env: environment, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`code-server ${args[0]} ended with exit status ${code}`);
}

function writeSettings(home, scope, settings) {
  const folder = path.join(home, "user", scope);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "settings.json"), JSON.stringify(settings));
}

/**
 * `home` holds everything that the editor writes; it is emptied first. `settings` are those of the
 * machine: VS Code does not take paths of programs from the settings of a remote user.
 * `environment` reaches the extension and so the language server. Without `trusted` a folder is opened in
 * restricted mode, as VS Code opens one whose authors nobody vouched for.
 */
export async function startEditor({ e2e, home, vsix, settings, environment, trusted = true }) {
  rmSync(home, { recursive: true, force: true });
  writeSettings(home, "User", { ...QUIET_SETTINGS, "security.workspace.trust.enabled": !trusted });
  writeSettings(home, "Machine", settings);
  writeFileSync(path.join(home, "config.yaml"), "");
  const env = { ...process.env, ...environment, HOME: home, XDG_CONFIG_HOME: path.join(home, "config") };
  const entry = path.join(e2e, "editor/node_modules/code-server/out/node/entry.js");
  const folders = ["--user-data-dir", path.join(home, "user"), "--extensions-dir", path.join(home, "extensions")];
  await runCodeServer(entry, ["--install-extension", vsix, "--force", ...folders], env);
  const port = await freePort();
  const log = openSync(path.join(home, "code-server.log"), "w");
  const server = spawn(
    process.execPath,
    [
      entry, "--config", path.join(home, "config.yaml"), ...folders, "--bind-addr", `127.0.0.1:${port}`,
      "--auth", "none", "--disable-telemetry", "--disable-update-check",
      "--disable-getting-started-override", "--reconnection-grace-time", "3",
      ...(trusted ? ["--disable-workspace-trust"] : []),
    ],
    // A process group of its own: code-server is two processes and both end with it.
    { env, stdio: ["ignore", log, log], detached: true },
  );
  const stop = () => stopGroup(server);
  try {
    await healthy(port, server);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, stop };
}

async function healthy(port, server) {
  for (let tries = 0; tries < 2400; tries += 1) {
    if (server.exitCode !== null) throw new Error(`code-server ended with exit status ${server.exitCode}`);
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(250);
  }
  throw new Error("code-server was not ready within 600 s");
}

async function stopGroup(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  process.kill(-child.pid, "SIGTERM");
  const timer = setTimeout(() => process.kill(-child.pid, "SIGKILL"), 5_000);
  await ended;
  clearTimeout(timer);
}

/**
 * Opens `file` of the folder `workspace` at a line. `language` is what the window says its language is; the words of
 * VS Code itself stay English without a language pack, those of extensions follow.
 */
export async function openWindow({ e2e, port, workspace, file, line = 1, language }) {
  const { chromium } = createRequire(path.join(e2e, "editor/package.json"))("playwright-core");
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS });
  const context = await browser.newContext({ viewport: { width: 1600, height: 900 }, deviceScaleFactor: 1 });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  if (language !== undefined) await setLanguage(page, language);
  const uri = `vscode-remote://127.0.0.1:${port}${path.join(workspace, file)}:${line}:1`;
  const payload = encodeURIComponent(JSON.stringify([["gotoLineMode", "true"], ["openFile", uri]]));
  await page.goto(`http://127.0.0.1:${port}/?folder=${workspace}&payload=${payload}`, { waitUntil: "commit" });
  await page.waitForSelector(".monaco-editor .view-line", { timeout: PATIENCE_MS });
  return { browser, page };
}

/** VS Code reads its language from a global that its page sets. */
async function setLanguage(page, language) {
  await page.addInitScript((given) => {
    Object.defineProperty(globalThis, "_VSCODE_NLS_LANGUAGE", { get: () => given, set: () => undefined });
  }, language);
}

/** Opens the menu of code actions at the cursor and gives the row with `title`. */
export async function openCodeAction(page, title) {
  const row = page.locator(".action-widget .monaco-list-row", { hasText: title }).first();
  // The lightbulb is there once the server has answered for this line.
  await page.locator('.monaco-editor :is([class*="light-bulb"], [class*="lightbulb"])').first().waitFor();
  for (let tries = 0; ; tries += 1) {
    await page.keyboard.press("Control+.");
    try {
      await row.waitFor({ timeout: 15_000 });
      return row;
    } catch (error) {
      if (tries === 3) throw error;
      await page.keyboard.press("Escape");
    }
  }
}
