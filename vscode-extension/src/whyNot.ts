/** Why code has no kernel, line by line, and what would help. */
import * as vscode from "vscode";
import { t } from "./l10n";
import { goTo } from "./places";
import { readReasons, type Reason } from "./review";

export const WHY_NOT = "evokernel.whyNot";

interface Item extends vscode.QuickPickItem {
  readonly reason: Reason;
}

/** Shows what the server answered to `evokernel.whyNot`; choosing a reason goes to its line. */
export async function showReasons(uri: string, answer: unknown): Promise<void> {
  const items = readReasons(answer).map(
    (reason): Item => ({
      label: `$(circle-slash) ${t("line {0}", reason.line + 1)}`,
      description: reason.code,
      detail: [reason.why, reason.help].filter((words) => words !== "").join(" "),
      reason,
    }),
  );
  if (items.length === 0) {
    void vscode.window.showInformationMessage(t("EvoKernel: no line of this file was refused."));
    return;
  }
  const chosen = await vscode.window.showQuickPick(items, {
    title: t("Why these lines have no kernel"),
    placeHolder: t("Enter goes to the line"),
    matchOnDescription: true,
    matchOnDetail: true,
  });
  if (chosen !== undefined) await goTo(uri, chosen.reason.line);
}
