/** "Generate NPU Kernel at Cursor": the server's code actions on the line, without the lightbulb. */
import * as vscode from "vscode";
import { t } from "./l10n";

const TITLE = "Generate NPU kernel";
/** More actions than one line ever has: each is resolved, so that it carries its command. */
const RESOLVE_COUNT = 50;

export async function generateHere(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId !== "python") {
    void vscode.window.showInformationMessage(t("EvoKernel: open a Python file that uses torch first."));
    return;
  }
  const actions = await offered(editor);
  const chosen = actions.length > 1 ? await pick(actions) : actions[0];
  if (chosen?.command !== undefined) {
    const { command, arguments: given } = chosen.command;
    await vscode.commands.executeCommand(command, ...((given ?? []) as unknown[]));
  } else if (actions.length === 0) {
    void vscode.window.showInformationMessage(
      t("EvoKernel: no operation on this line can become a kernel; put the cursor on a line with a ⚡ hint."),
    );
  }
}

async function offered(editor: vscode.TextEditor): Promise<vscode.CodeAction[]> {
  const actions = await vscode.commands.executeCommand<(vscode.CodeAction | vscode.Command)[]>(
    "vscode.executeCodeActionProvider",
    editor.document.uri,
    editor.selection,
    vscode.CodeActionKind.RefactorRewrite.value,
    RESOLVE_COUNT,
  );
  return actions.filter(
    (action): action is vscode.CodeAction => action.title.startsWith(TITLE) && "kind" in action && !isDisabled(action),
  );
}

function isDisabled(action: vscode.CodeAction): boolean {
  return action.disabled !== undefined;
}

async function pick(actions: readonly vscode.CodeAction[]): Promise<vscode.CodeAction | undefined> {
  const items = actions.map((action) => ({ label: action.title, action }));
  return (await vscode.window.showQuickPick(items, { placeHolder: t("Which operation?") }))?.action;
}
