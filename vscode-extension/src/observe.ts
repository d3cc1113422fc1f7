/** A terminal with the command that shows the server how a model is used; the person runs it. */
import * as vscode from "vscode";
import { t } from "./l10n";

export const OBSERVE = "evokernel.observe";

export interface ObserveAnswer {
  readonly commandLine: string;
  readonly folder: string;
}

/** What the server answers to OBSERVE, undefined where it refused. */
export function observeAnswer(answer: unknown): ObserveAnswer | undefined {
  const given = answer as Partial<ObserveAnswer> | null | undefined;
  if (typeof given?.commandLine !== "string" || typeof given.folder !== "string") return undefined;
  return { commandLine: given.commandLine, folder: given.folder };
}

/** The command is typed in, not run: its program may want arguments. */
export function offerInTerminal(answer: ObserveAnswer): void {
  const terminal = vscode.window.createTerminal({ name: t("EvoKernel: observe"), cwd: answer.folder });
  terminal.show();
  terminal.sendText(answer.commandLine, false);
}
