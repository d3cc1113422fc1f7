// The main job in a real VS Code: open a model, see the hint, generate the kernel, accept the refined one.
// Usage: node story.mjs E2E_DIR SERVER_COMMAND...
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openCodeAction, openWindow, startEditor } from "./editor.mjs";

const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
const [e2e, ...serverCommand] = process.argv.slice(2);
const workspace = path.join(e2e, "model");
const shots = path.join(e2e, "shots");
const FILE = "training_loss.py";
/** The operation that becomes a kernel. */
const OPERATION = "prediction - target";
/** Messages slide in; a picture is taken when they stand still. */
const FADE_MS = 700;
const MODEL = path.join(workspace, FILE);
/** The scenario takes any gain for an offer, so that it does not hang on the first draft being poor. */
const SETTINGS = { "evokernel.serverCommand": serverCommand, "evokernel.leastGain": 0.001 };

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

const onDisk = () => readFileSync(MODEL, "utf8");

/** The generated kernel's name, once the edited file is on the disk. */
const callOnDisk = () => /^from evokernel_kernels import (\w+)/m.exec(onDisk())?.[1];

/** What the package of a kernel holds now; undefined in the moment in which it is replaced. */
function verdictOf(name) {
  const manifest = path.join(workspace, "evokernel_kernels", name, "kernel.json");
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).verdict : undefined;
}

const figures = ({ latency }) => `${digits(latency.us)} µs ${latency.source} (bound ${digits(latency.roofline_us)})`;

/** As the hint writes it. */
const digits = (us) => (us >= 100 ? us.toFixed(0) : us.toFixed(1));

/** The line of the editor that holds some text. */
const lineWith = (page, text) => page.locator(".view-line", { hasText: text }).first();

/** The hint at the end of a line, once its words match. */
async function hintOn(line, words) {
  const hint = line.locator("span span", { hasText: words }).last();
  await hint.waitFor({ timeout: 120_000 });
  return (await hint.textContent()).replaceAll("\u00a0", " ").trim();
}

async function seeHint(page) {
  const words = await hintOn(lineWith(page, OPERATION), /⚡.*µs/);
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
  await lineWith(page, OPERATION).click({ position: { x: 200, y: 8 } });
  const action = await openCodeAction(page, "Generate NPU kernel");
  await shot(page, "2-code-action");
  const asked = Date.now();
  await action.click();
  const name = await until(page, "edit", 120, callOnDisk);
  const seconds = (Date.now() - asked) / 1000;
  step(`applied ${name} ${seconds.toFixed(1)} s after the code action: ${figures(verdictOf(name))}`);
  await hintOn(lineWith(page, `${name}.run(`), /⚡.*µs/);
  await shot(page, "3-applied");
  return name;
}

const answer = (toast, words) => toast.locator(`.monaco-button:has-text("${words}")`).click();

/** The kernel's two versions side by side, as what they are: C++. */
async function readDiff(page, toast) {
  await answer(toast, "Show diff");
  await page.locator(".monaco-diff-editor .view-line", { hasText: "TILE_ELEMENTS" }).first().waitFor({ timeout: 20_000 });
  await page.locator(".statusbar-item", { hasText: "C++" }).waitFor({ timeout: 10_000 });
  await sleep(FADE_MS);
  await shot(page, "5-diff");
  await page.locator(".tab.active .tab-actions .action-label").click();
  await page.locator(".monaco-diff-editor").waitFor({ state: "hidden", timeout: 10_000 });
}

async function accept(page, name) {
  const before = verdictOf(name);
  const toast = page.locator(".notifications-toasts .notification-list-item", { hasText: /faster/i }).first();
  await toast.waitFor({ timeout: 240_000 });
  step(`offered: ${(await toast.locator(".notification-list-item-message").textContent()).trim()}`);
  await sleep(FADE_MS);
  await shot(page, "4-offer");
  await readDiff(page, toast);
  await answer(toast, "Apply");
  const after = await until(page, "package of the faster kernel", 60, () => {
    const now = verdictOf(name);
    return now?.source_id === before.source_id ? undefined : now;
  });
  step(`accepted: ${figures(before)} became ${figures(after)}`);
  if (!(after.latency.us < before.latency.us)) throw new Error("The accepted kernel is not faster.");
  if (callOnDisk() !== name) throw new Error("The file no longer calls the kernel.");
  await hintOn(lineWith(page, `${name}.run(`), new RegExp(`⚡\\s${digits(after.latency.us)}\\sµs`));
  await sleep(FADE_MS);
  await shot(page, "6-accepted");
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
    settings: SETTINGS,
    environment: { EVOKERNEL_HOME: path.join(e2e, "evokernel-home") },
  });
  step("VS Code is ready");
  let window;
  try {
    const line = onDisk().split("\n").findIndex((text) => text.includes(OPERATION)) + 1;
    window = await openWindow({ e2e, port: editor.port, workspace, file: FILE, line });
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
