// The main job in a real VS Code: hints, a kernel that waits, its review, decisions of every kind, and the way back.
// Usage: node story.mjs E2E_DIR SERVER_COMMAND...
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { check, Desk, plain, step } from "./desk.mjs";
import { openCodeAction, openWindow, startEditor } from "./editor.mjs";
import { noCompiler, noTorch, restricted } from "./lacking.mjs";

const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));
const [e2e, ...serverCommand] = process.argv.slice(2);
const workspace = path.join(e2e, "model");
/** Another folder with the same file. */
const stranger = path.join(e2e, "stranger");
const shots = path.join(e2e, "shots");
const FILE = "training_loss.py";
const MODEL = path.join(workspace, FILE);
const ORIGINAL = readFileSync(path.join(EXAMPLES, FILE), "utf8");
/** As a person has them, but any gain is a notice, and fewer attempts look for it: the scenario does not hang on the first draft being poor. */
const SETTINGS = { "evokernel.serverCommand": serverCommand, "evokernel.leastGain": 0.001, "evokernel.budget": 6 };
/** Operations that become kernels. */
const DISTANCE = "prediction - target";
const GAP = "teacher / temperature";
/** Messages, by their words. */
const READY = /is ready/;
const FASTER = /takes .+ less/;
const UNSHAPED = `import torch
import torch.nn.functional as F


def gate(x, w):
    return F.gelu(x) * torch.sigmoid(w)
`;
const PROGRAM = `import torch
from unshaped import gate

gate(torch.randn(4096, 1024), torch.randn(4096, 1024))
`;

function prepare() {
  for (const folder of [workspace, stranger, shots]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  for (const folder of [workspace, stranger]) cpSync(path.join(EXAMPLES, FILE), path.join(folder, FILE));
  writeFileSync(path.join(workspace, "unshaped.py"), UNSHAPED);
  writeFileSync(path.join(workspace, "train_gate.py"), PROGRAM);
  // A project of its own, wherever it lies: programs that use a file are looked for in its project.
  writeFileSync(path.join(workspace, "pyproject.toml"), "");
}

const onDisk = () => readFileSync(MODEL, "utf8");
const isUntouched = () => onDisk() === ORIGINAL;

/** The kernels that the file calls, once the edited file is on the disk. */
const calls = () => [...onDisk().matchAll(/(\w+)\.run\(/g)].map(([, name]) => name);

/** The packages that are installed. */
function packages() {
  const folder = path.join(workspace, "evokernel_kernels");
  if (!existsSync(folder)) return [];
  return readdirSync(folder).filter((name) => existsSync(path.join(folder, name, "kernel.json")));
}

/** Undefined in the moment in which a package is replaced. */
function manifestOf(name) {
  const file = path.join(workspace, "evokernel_kernels", name, "kernel.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

async function needsInputs(desk) {
  await desk.hint("def gate", /⚡\sshapes\sneeded/);
  await desk.status("needs inputs");
  await desk.shot("01-needs-inputs");
  step("a file without inputs says so");
}

/** The command is typed in, and the person runs it: what the program shows gives the file its hints. */
async function observe(desk) {
  await desk.clickLine("F.gelu");
  await (await openCodeAction(desk.page, "Run something that uses this model")).click();
  await desk.terminal(/observe -- \S+\s+train_gate\.py/);
  await desk.hint("def gate", /⚡\sshapes\sneeded/);
  await desk.shot("02-observe");
  await desk.page.keyboard.press("Enter");
  const words = await desk.hint("F.gelu", /⚡.*µs/);
  await desk.command("View: Toggle Panel Visibility");
  check(readFileSync(path.join(workspace, "unshaped.py"), "utf8") === UNSHAPED, "Observing edited the file.");
  step(`observed: ${words}`);
}

async function hints(desk) {
  await desk.open(FILE);
  const words = await desk.hint(DISTANCE, /⚡.*µs/);
  check(/estimated|measured/.test(words), `The hint does not say where its figures come from: ${words}`);
  await desk.shot("03-hints");
  step(`hint: ${words}`);
}

/** Generates from the lightbulb; the kernel waits, and nothing is edited. Gives the words that say so. */
async function generate(desk, text, picture) {
  const before = packages().join();
  await desk.clickLine(text);
  const action = await openCodeAction(desk.page, "Generate NPU kernel");
  if (picture) await desk.shot(picture);
  await action.click();
  const said = await desk.said(READY);
  check(isUntouched(), "A kernel was put in place before anybody saw it.");
  check(packages().join() === before, "A package was written before anybody saw it.");
  return said;
}

async function ready(desk) {
  step(`message: ${await generate(desk, DISTANCE, "04-lightbulb")}`);
  const hint = await desk.hint(DISTANCE, /⚡.*ready/);
  check(/µs (estimated|measured) \(was [\d.,]+\)$/.test(hint), `The hint is cut: ${hint}`);
  await desk.lens(/ready.*review/).waitFor();
  await desk.status("kernel ready");
  await desk.shot("05-ready");
}

async function review(desk) {
  await desk.press(READY, "Review");
  await desk.modified(".run(");
  const { frame, text } = await desk.pageWith(/Why it is faster/);
  for (const words of ["Eager", "Roofline limit", "estimated", "Guards", "Condition", "What was verified"]) {
    check(text.includes(words), `The evidence does not say “${words}”.`);
  }
  await frame.getByText("What was verified").click();
  await frame.getByText("float32 4096×1024").first().waitFor();
  for (const label of ["Accept Kernel", "Reject Kernel", "Snooze Kernel"]) await desk.titleButton(label).waitFor();
  check(isUntouched(), "Looking at a review changed the file.");
  await desk.shot("06-review");
  step("reviewed: the change, and its evidence beside it");
}

async function kernelFiles(desk) {
  const { frame } = await desk.pageWith(/Why it is faster/);
  await frame.getByText("The kernel's files").click();
  await frame.getByText("op_kernel.cpp (new)").click();
  await desk.modified("kernel_operator.h");
  await desk.shot("07-kernel-file");
  await desk.closeEditor();
  step("the kernel's own file was read");
}

/** Two kernels wait; both are taken with one edit, and one undo takes both back. */
async function acceptSome(desk) {
  await desk.command("View: Close All Editors");
  await desk.open(FILE);
  await generate(desk, GAP);
  await desk.dismissToasts();
  await desk.clickLine(GAP);
  await desk.command("EvoKernel: Accept Some Kernels");
  const rows = await desk.rows("µs");
  await desk.until("list of the two kernels that wait", async () => (await rows.count()) === 2);
  for (const row of await rows.all()) await row.click();
  await desk.shot("08-accept-some");
  await desk.page.keyboard.press("Enter");
  const names = await desk.until("edit of two kernels", () => (calls().length === 2 ? calls() : undefined));
  check(names.every((name) => packages().includes(name)), "A kernel is called whose package is not there.");
  await desk.shot("09-accepted");
  step(`accepted with one edit: ${names.join(", ")}`);
  await desk.clickLine("def charbonnier");
  await desk.page.keyboard.press("Control+z");
  await desk.until("file as it was after one undo", isUntouched);
  await desk.until("packages gone after the undo", () => packages().length === 0);
  step("one undo took both back, packages included");
}

/** What was undone waits again. Accepts it with the keyboard, and reverts. */
async function acceptAndRevert(desk) {
  await desk.hint(DISTANCE, /⚡.*ready/);
  await desk.clickLine(DISTANCE);
  await desk.command("EvoKernel: Review Kernel");
  await desk.modified("from evokernel_kernels import");
  await desk.page.keyboard.press("Control+Enter");
  const [name] = await desk.until("edit", () => (calls().length > 0 ? calls() : undefined));
  await desk.diffEditor().waitFor({ state: "hidden",  });
  const hint = await desk.hint(`${name}.run(`, /⚡.*µs/);
  check(hint.endsWith(")"), `The hint is cut: ${hint}`);
  step(`accepted ${name}`);
  await desk.clickLine(`${name}.run(`);
  await desk.command("EvoKernel: Revert Kernel");
  await desk.until("person's code after the revert", isUntouched);
  step("reverted");
}

/**
 * What is refined in the background is told once, reviewed, and replaces the package alone. The softmax: its first
 * draft leaves some per cent, and nothing has refined it before.
 */
async function notice(desk) {
  await desk.hint(GAP, /⚡.*ready/);
  await desk.clickLine(GAP);
  await desk.command("EvoKernel: Accept Kernel");
  const [name] = await desk.until("edit", () => (calls().length > 0 ? calls() : undefined));
  const [before, text] = [manifestOf(name), onDisk()];
  step(`offered: ${await desk.said(FASTER, 1200)}`);
  await desk.shot("10-notice");
  await desk.press(FASTER, "Review");
  const { text: evidence } = await desk.pageWith(/Accepted kernel/);
  check(evidence.includes("Your Python file is unchanged."), "The evidence does not say that the file stays.");
  await desk.shot("11-faster");
  await desk.titleButton("Accept Kernel").click();
  const after = await desk.until("package of the faster kernel", () => {
    const now = manifestOf(name);
    return now === undefined || now.verdict.source_id === before.verdict.source_id ? undefined : now;
  });
  check(after.verdict.latency.us < before.verdict.latency.us, "The accepted kernel is not faster.");
  check(onDisk() === text, "The Python file changed with a faster kernel.");
  // The review leaves the screen, and the file comes to the front: a list that is open then closes.
  await desk.tab("Evidence").waitFor({ state: "hidden",  });
  await desk.tab(FILE, ".active").waitFor();
  await desk.settle();
  step(`accepted: ${before.verdict.latency.us.toFixed(1)} became ${after.verdict.latency.us.toFixed(1)} µs ${after.verdict.latency.source}`);
  return name;
}

async function variants(desk, name) {
  await desk.clickLine(`${name}.run(`);
  await desk.command("EvoKernel: Compare Kernel Variants");
  const { frame } = await desk.pageWith(/Verified kernels of this code/);
  const rows = frame.locator("tr", { hasText: "µs" });
  const all = (await rows.allTextContents()).map(plain);
  check(all.length >= 2, `Two kernels were verified, and ${all.length} are listed.`);
  check(all.some((row) => row.includes("accepted")), `No variant is marked as accepted: ${all.join(" | ")}`);
  check(all.every((row) => /µs (estimated|measured)/.test(row)), "A variant has no latency with its source.");
  await desk.shot("12-variants");
  await rows.nth(1).getByText("Compare").click();
  await desk.diffEditor().waitFor();
  await desk.shot("13-variant-diff");
  step(`variants: ${all.length}`);
}

/** Kernels wait, are installed and are worked on: the view says which. */
async function tree(desk) {
  await desk.command("EvoKernel: Focus on Kernels View");
  await desk.page.locator(".sidebar .monaco-list-row", { hasText: "Kernels" }).first().waitFor();
  await desk.page.locator(".sidebar .monaco-list-row", { hasText: "µs estimated" }).first().waitFor();
  await desk.shot("14-view");
  await desk.command("View: Toggle Primary Side Bar Visibility");
  step("the view lists what is installed");
}

/** The whole state on one page: who verifies, the jobs, the installed kernel. */
async function dashboard(desk, name) {
  await desk.command("EvoKernel: Open Dashboard");
  const { frame } = await desk.pageWith(/Jobs in the queue/);
  await frame.getByText("Older jobs").click();
  const text = await frame.locator("body").innerText();
  for (const words of ["Verifier", "this machine", "Generate", "Refine", "training_loss.py", name, "µs estimated"]) {
    check(text.includes(words), `The dashboard does not say “${words}”.`);
  }
  await desk.shot("15-dashboard");
  step("the dashboard shows the jobs and the kernel");
}

async function reject(desk) {
  await desk.command("View: Close All Editors");
  await desk.open(FILE);
  const text = onDisk();
  await desk.clickLine(DISTANCE);
  const action = await openCodeAction(desk.page, "Generate NPU kernel");
  await action.click();
  await desk.said(READY);
  await desk.press(READY, "Review");
  await desk.modified("from evokernel_kernels import");
  await desk.page.keyboard.press("Control+Backspace");
  const rows = await desk.rows("Hard to read");
  await desk.shot("16-reject");
  await rows.first().click();
  await desk.diffEditor().waitFor({ state: "hidden",  });
  await desk.until("hint without a kernel that waits", async () => !/ready/.test(await desk.hint(DISTANCE, /⚡/)));
  check(onDisk() === text, "A rejected kernel changed the file.");
  step("rejected with a reason");
}

async function never(desk) {
  await desk.clickLine(DISTANCE);
  await desk.command("EvoKernel: Never Offer a Kernel Here");
  await desk.until("line without a hint", async () => !/⚡/.test(plain(await desk.line(DISTANCE).textContent())));
  await desk.command("EvoKernel: Offer Kernels Again in This File");
  await desk.hint(DISTANCE, /⚡.*µs/);
  step("never here, and offered again");
}

async function light(desk, name) {
  await desk.command("Preferences: Toggle between Light/Dark Themes");
  await desk.page.locator(".monaco-workbench.vs").waitFor();
  await desk.clickLine(`${name}.run(`);
  await desk.command("EvoKernel: Review Kernel");
  const { frame } = await desk.pageWith(/This kernel is accepted/);
  const color = await frame.evaluate(() => getComputedStyle(document.body).color);
  check(color !== "rgb(204, 204, 204)", `The evidence is not light in a light theme: ${color}`);
  await desk.shot("17-light");
  step("light");
}

/** Another window, in Chinese: commands of the manifest, buttons, evidence. */
async function chinese(port, name) {
  const line = onDisk().split("\n").findIndex((text) => text.includes(`${name}.run(`)) + 1;
  const window = await openWindow({ e2e, port, workspace, file: FILE, line, language: "zh-cn" });
  const desk = new Desk(window.page, shots);
  try {
    await desk.hint(`${name}.run(`, /⚡.*µs/);
    await desk.clickLine(`${name}.run(`);
    await desk.command("EvoKernel: 审阅算子");
    const { text } = await desk.pageWith(/此算子已采用/);
    for (const words of ["时延", "守卫条件", "校验了什么"]) check(text.includes(words), `The evidence does not say ${words}.`);
    await desk.shot("18-chinese");
    step("Chinese");
  } catch (error) {
    await desk.shot("failure-chinese");
    throw error;
  } finally {
    await window.browser.close();
  }
}

async function story(desk) {
  await desk.tidy();
  await needsInputs(desk);
  await observe(desk);
  await hints(desk);
  await ready(desk);
  await review(desk);
  await kernelFiles(desk);
  await acceptSome(desk);
  await acceptAndRevert(desk);
  const name = await notice(desk);
  await variants(desk, name);
  await tree(desk);
  await dashboard(desk, name);
  await reject(desk);
  await never(desk);
  await light(desk, name);
  return name;
}

const start = (home, more) =>
  startEditor({
    e2e,
    home: path.join(e2e, home),
    vsix: path.join(e2e, "evokernel.vsix"),
    settings: SETTINGS,
    environment: { EVOKERNEL_HOME: path.join(e2e, "evokernel-home") },
    ...more,
  });

async function main() {
  prepare();
  const editor = await start("vscode-home");
  step("VS Code is ready");
  let window;
  try {
    window = await openWindow({ e2e, port: editor.port, workspace, file: "unshaped.py" });
    step("a window is open");
    const name = await story(new Desk(window.page, shots));
    await window.browser.close();
    await chinese(editor.port, name);
  } catch (error) {
    await window?.page.screenshot({ path: path.join(shots, "failure.png") }).catch(() => undefined);
    throw error;
  } finally {
    await window?.browser.close();
    await editor.stop();
  }
  const alone = { e2e, shots, start, workspace: stranger, file: FILE };
  await restricted(alone);
  await noTorch(alone, SETTINGS);
  await noCompiler(alone, SETTINGS, DISTANCE);
}

await main();
