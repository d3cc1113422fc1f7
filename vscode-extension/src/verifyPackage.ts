/** Verifies an accepted kernel's package again, in a terminal that shows the verdict. */
import * as vscode from "vscode";
import type { Candidate } from "./fallback";
import { t } from "./l10n";

/** The command line of the program that runs the server; undefined where it cannot be told. */
export function verifyArguments({ args }: Candidate, folder: string): string[] | undefined {
  const at = args.lastIndexOf("lsp");
  return at < 0 ? undefined : [...args.slice(0, at), "verify", folder];
}

export async function verifyPackage(candidate: Candidate | undefined, folder: vscode.Uri | undefined): Promise<void> {
  if (folder === undefined) return;
  const args = candidate && verifyArguments(candidate, folder.fsPath);
  if (candidate === undefined || args === undefined) {
    const said = t("EvoKernel: run “evokernel verify {0}” in a terminal; the server's command does not say how.", folder.fsPath);
    void vscode.window.showInformationMessage(said);
    return;
  }
  const task = new vscode.Task(
    { type: "evokernel", task: "verify" },
    vscode.TaskScope.Workspace,
    t("verify {0}", folder.path.split("/").at(-1) ?? ""),
    "EvoKernel",
    new vscode.ProcessExecution(candidate.command, args),
  );
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated };
  await vscode.tasks.executeTask(task);
}
