/** Tries a candidate out: finds an executable, or runs a command that prints a version. */
import { execFile, type ExecFileException } from "node:child_process";
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import type { Outcome, Trial } from "./fallback";

const TIMEOUT_MS = 10_000;

export function attempt(trial: Trial): Promise<Outcome> {
  return trial.kind === "executable" ? findExecutable(trial.command) : runVersion(trial.command, trial.args);
}

async function findExecutable(command: string): Promise<Outcome> {
  for (const file of places(command)) {
    const found = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return { ok: true, version: "" };
  }
  return { ok: false, reason: `${command} is not an executable file` };
}

function places(command: string): string[] {
  if (path.basename(command) !== command) return [path.resolve(os.homedir(), command)];
  const endings = process.platform === "win32" ? ["", ".exe", ".cmd", ".bat"] : [""];
  const folders = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  return folders.flatMap((folder) => endings.map((ending) => path.join(folder, command + ending)));
}

/** Runs in the home folder, so that nothing in a workspace is imported by accident. */
function runVersion(command: string, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(command, [...args], { timeout: TIMEOUT_MS, cwd: os.homedir() }, (error, stdout, stderr) => {
      if (error === null) resolve({ ok: true, version: lastWord(stdout) });
      else resolve({ ok: false, reason: failure(command, error, stderr) });
    });
  });
}

function lastWord(text: string): string {
  return text.trim().split(/\s+/).at(-1) ?? "";
}

function failure(command: string, error: ExecFileException, stderr: string): string {
  if (error.code === "ENOENT") return `${command} does not exist`;
  if (error.killed === true) return `${command} gave no answer within ${TIMEOUT_MS / 1000} s`;
  const line = stderr.trim().split("\n").at(-1)?.trim();
  return line === undefined || line === "" ? `${command} failed` : line;
}
