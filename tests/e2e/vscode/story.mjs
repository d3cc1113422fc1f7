// The main job in a real VS Code: open a model, see the hint, generate the kernel, accept the refined one.
// Usage: node story.mjs E2E_DIR SERVER_COMMAND...
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openCodeAction, openWindow, startEditor } from "./editor.mjs";

const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
const [e2e, ...serverCommand] = process.argv.slice(2);
const workspace = path.join(e2e, "model");
const shots = path.join(e2e, "shots");
const FILE = "transformer_block.py";
/** Messages slide in; a picture is taken when they stand still. */
const FADE_MS = 700;
const HINT = /⚡.*µs/;
const MODEL = path.join(workspace, FILE);

const started = Date.now();
function step(words) {
  console.log(`[${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s] ${words}`);
}

function prepare() {
  for (const folder of [workspace, shots]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  cpSync(path.join(EXAMPLES, FILE), MODEL);
}

const shot = (page, name) => page.screenshot({ path: path.join(shots, `${name}.png`) });

/** Looks until something is found. A message that the editor shows meanwhile says why it will not come. */
async function until(page, what, seconds, look) {
  const deadline = Date.now() + seconds * 1000;
  const messages = page.locator(".notifications-toasts .notification-list-item-message", { hasText: "EvoKernel" });
  for (;;) {
    const found = look();
    if (found) return found;
    const [said] = await messages.allTextContents();
    if (said !== undefined) throw new Error(`Instead of ${what} there was a message: ${said}`);
    if (Date.now() > deadline) throw new Error(`There was no ${what} within ${seconds} s`);
    await sleep(100);
  }
}

/** The generated call's name, once the edited file is on the disk. */
const callOnDisk = () => /torch\.ops\.evokernel\.(\w+)\(/.exec(readFileSync(MODEL, "utf8"))?.[1];

/** What the package of a kernel holds now. */
function verdictOf(name) {
  const manifest = path.join(workspace, "evokernel_kernels", name, "kernel.json");
  return JSON.parse(readFileSync(manifest, "utf8")).verdict;
}

const figures = ({ latency }) => `${digits(latency.us)} µs ${latency.source} (bound ${digits(latency.roofline_us)})`;

/** As the hint writes it. */
const digits = (us) => (us >= 100 ? us.toFixed(0) : us.toFixed(1));

async function seeHint(page) {
  const hint = page.locator(".view-line span span", { hasText: HINT }).last();
  await hint.waitFor({ timeout: 120_000 });
  const words = (await hint.textContent()).trim();
  step(`hint: ${words}`);
  if (!/modelled|measured/.test(words)) throw new Error(`The hint does not say where its figures come from: ${words}`);
  await shot(page, "1-hint");
}

/** Room for the code: the explorer is closed, and what the mouse was over is not. */
async function tidy(page) {
  await page.keyboard.press("Control+b");
  await page.locator(".part.sidebar").waitFor({ state: "hidden" });
}

async function generate(page) {
  await page.locator(".view-line", { hasText: HINT }).first().click({ position: { x: 200, y: 8 } });
  const action = await openCodeAction(page, "Generate NPU kernel");
  await shot(page, "2-code-action");
  const asked = Date.now();
  await action.click();
  const name = await until(page, "edit", 120, callOnDisk);
  step(`applied ${name} ${((Date.now() - asked) / 1000).toFixed(1)} s after the code action: ${figures(verdictOf(name))}`);
  await shot(page, "3-applied");
  return name;
}

async function accept(page, name) {
  const before = verdictOf(name);
  const toast = page.locator(".notifications-toasts .notification-list-item", { hasText: /faster/i }).first();
  await toast.waitFor({ timeout: 240_000 });
  step(`offered: ${(await toast.locator(".notification-list-item-message").textContent()).trim()}`);
  await sleep(FADE_MS);
  await shot(page, "4-offer");
  await toast.locator('.monaco-button:has-text("Apply")').click();
  await until(page, "package of the faster kernel", 60, () => verdictOf(name).source_id !== before.source_id);
  const after = verdictOf(name);
  step(`accepted: ${figures(before)} became ${figures(after)}`);
  if (!(after.latency.us < before.latency.us)) throw new Error("The accepted kernel is not faster.");
  if (callOnDisk() !== name) throw new Error("The file no longer calls the kernel.");
  await page.locator(".view-line", { hasText: new RegExp(`⚡\\s${digits(after.latency.us)}\\sµs`) }).first().waitFor({ timeout: 20_000 });
  await sleep(FADE_MS);
  await shot(page, "5-accepted");
}

async function story(page) {
  await tidy(page);
  await seeHint(page);
  const name = await generate(page);
  await accept(page, name);
}

async function main() {
  prepare();
  const editor = await startEditor({
    e2e,
    home: path.join(e2e, "vscode-home"),
    vsix: path.join(e2e, "evokernel.vsix"),
    settings: { "evokernel.serverCommand": serverCommand },
    environment: { EVOKERNEL_HOME: path.join(e2e, "evokernel-home") },
  });
  step("VS Code is ready");
  let window;
  try {
    window = await openWindow({ e2e, port: editor.port, workspace, file: FILE });
    step("the model file is open");
    await story(window.page);
  } catch (error) {
    await window?.page.screenshot({ path: path.join(shots, "failure.png") });
    throw error;
  } finally {
    await window?.browser.close();
    await editor.stop();
  }
}

await main();
