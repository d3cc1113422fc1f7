// Editors of their own in which something is missing: trust, torch, a compiler. The file says what, and what to do.
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { check, Desk, step } from "./desk.mjs";
import { openCodeAction, openWindow } from "./editor.mjs";

const COMPILER = /^(.*-)?(g\+\+|c\+\+|clang\+\+)(-\d+)?$/;

/** Plays in a window on `alone.file`; `alone` is the machine: where things are, and how its editor is started. */
async function inItsOwnEditor(alone, home, more, picture, play) {
  const editor = await alone.start(home, more);
  let window;
  try {
    window = await openWindow({ e2e: alone.e2e, port: editor.port, workspace: alone.workspace, file: alone.file });
    const desk = new Desk(window.page, alone.shots);
    await desk.tidy();
    await play(desk);
  } catch (error) {
    await window?.page.screenshot({ path: path.join(alone.shots, `failure-${picture}.png`) }).catch(() => undefined);
    throw error;
  } finally {
    await window?.browser.close();
    await editor.stop();
  }
}

/** No code is run: the file says why, and no figure is made up. */
const withoutRunning = (alone, home, more, words, picture) =>
  inItsOwnEditor(alone, home, more, picture, async (desk) => {
    const hint = await desk.hint("def smoothed_cross_entropy", words);
    const shown = await desk.page.locator(".editor-instance").first().innerText();
    check(!shown.includes("µs"), "There are estimates, which only running the code can give.");
    await desk.shot(picture);
    check((await desk.page.locator(".squiggly-error").count()) === 0, "Code is marked as wrong that is not.");
    step(`no code is run: ${hint}`);
  });

/** Restricted mode, as VS Code opens a folder whose authors nobody vouched for. */
export const restricted = (alone) =>
  withoutRunning(alone, "vscode-home-restricted", { trusted: false }, /⚡\snot\strusted/, "19-not-trusted");

/** The interpreter that the person chose is a Python without torch. */
export const noTorch = (alone, settings) =>
  withoutRunning(
    alone,
    "vscode-home-no-torch",
    { settings: { ...settings, "evokernel.interpreter": path.join(alone.e2e, "node24/bin/python") } },
    /⚡\sno\sPython\swith\storch/,
    "20-no-torch",
  );

/** All programs of this machine but its C++ compilers. */
function pathWithoutCompiler(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const place of new Set(process.env.PATH.split(":"))) {
    let names = [];
    try {
      names = readdirSync(place);
    } catch {
      continue; // a folder of PATH that is not there
    }
    for (const name of names.filter((item) => !COMPILER.test(item))) {
      try {
        symlinkSync(path.join(place, name), path.join(folder, name));
      } catch (error) {
        if (error.code !== "EEXIST") throw error; // the first on PATH is the one that is run
      }
    }
  }
  return folder;
}

/** Hints need no compiler, and a kernel that is asked for waits until there is one. */
export function noCompiler(alone, settings, operation) {
  const file = path.join(alone.workspace, alone.file);
  const environment = { EVOKERNEL_HOME: path.join(alone.e2e, "evokernel-home-no-compiler") };
  rmSync(environment.EVOKERNEL_HOME, { recursive: true, force: true });
  // An editor takes PATH from the login shell, whatever it was started with: only the server's own is another.
  const without = ["/usr/bin/env", `PATH=${pathWithoutCompiler(path.join(alone.e2e, "no-compiler"))}`, "CXX="];
  const own = { ...settings, "evokernel.serverCommand": [...without, ...settings["evokernel.serverCommand"]] };
  return inItsOwnEditor(alone, "vscode-home-no-compiler", { environment, settings: own }, "21-no-compiler", async (desk) => {
    const before = readFileSync(file, "utf8");
    await desk.hint(operation, /⚡.*µs/);
    await desk.clickLine(operation);
    await (await openCodeAction(desk.page, "Generate NPU kernel")).click();
    const said = await desk.said(/no C\+\+17 compiler/);
    for (const words of ["install g++", "clang++", "pip install ziglang", "by itself"]) {
      check(said.includes(words), `The message does not say “${words}”: ${said}`);
    }
    await desk.status("waiting");
    check((await desk.red()) === 0, "Something is red, and nothing is broken.");
    await desk.hint(operation, /⚡.*µs/);
    check(readFileSync(file, "utf8") === before, "The file changed without a kernel.");
    await desk.shot("21-no-compiler");
    await desk.command("EvoKernel: Open Dashboard");
    const { text } = await desk.pageWith(/Jobs in the queue/);
    for (const words of ["cannot verify now", "no C++17 compiler"]) check(text.includes(words), `The dashboard does not say “${words}”.`);
    await desk.shot("22-no-compiler-dashboard");
    step(`no compiler: ${said}`);
  });
}
