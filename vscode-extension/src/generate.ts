/** "Generate Kernel at Cursor": the server's code actions on the line, without the lightbulb. */
import * as vscode from "vscode";
import { t } from "./l10n";
import { actionsAt, pythonEditor, type Action } from "./places";

export const GENERATE = "evokernel.generate";
/** The same in a target that nobody has chosen yet. */
export const GENERATE_IN = "evokernel.generateIn";

export async function generateHere(): Promise<void> {
  const editor = pythonEditor();
  if (editor === undefined) {
    void vscode.window.showInformationMessage(t("EvoKernel: open a Python file that uses torch first."));
    return;
  }
  const actions = await actionsAt(editor, [GENERATE, GENERATE_IN]);
  const chosen = actions.length > 1 ? await pick(actions) : actions[0];
  if (chosen !== undefined) {
    const { command, arguments: given } = chosen.command;
    await vscode.commands.executeCommand(command, ...((given ?? []) as unknown[]));
  } else if (actions.length === 0) {
    void vscode.window.showInformationMessage(
      t("EvoKernel: no operation on this line can become a kernel; put the cursor on a line with a ⚡ hint."),
    );
  }
}

async function pick(actions: readonly Action[]): Promise<Action | undefined> {
  const items = actions.map((action) => ({ label: action.title, action }));
  return (await vscode.window.showQuickPick(items, { placeHolder: t("Which operation?") }))?.action;
}
