/** The status item: the state of the active file, who verifies, and which command runs the server. */
import * as vscode from "vscode";
import { t } from "./l10n";
import { lookOf, textOf } from "./looks";
import type { Mode, StatusParams } from "./protocol";

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private server = "";
  private readonly notes: string[] = [];
  private last: StatusParams = { mode: "ready", text: "", verifier: "", interpreter: "" };

  constructor() {
    this.item = vscode.window.createStatusBarItem("evokernel.status", vscode.StatusBarAlignment.Right, 90);
    this.item.name = "EvoKernel";
    this.item.command = "evokernel.menu";
  }

  dispose(): void {
    this.item.dispose();
  }

  get text(): string {
    return this.last.text;
  }

  get mode(): Mode {
    return this.last.mode;
  }

  starting(): void {
    this.server = "";
    this.last = { mode: "ready", text: t("Starting the server."), verifier: "", interpreter: "" };
    this.draw("starting");
  }

  /** `server` names the command in words; `notes` say which preferred ones did not work. */
  running(server: string, notes: readonly string[]): void {
    this.server = server;
    this.notes.splice(0, this.notes.length, ...notes);
    this.last = { ...this.last, mode: "ready", text: t("Ready.") };
    this.draw("ready");
  }

  failed(text: string): void {
    this.last = { mode: "error", text, verifier: "", interpreter: "" };
    this.draw("error");
  }

  update(params: StatusParams): void {
    this.last = params;
    this.draw(params.mode);
  }

  private draw(look: Mode | "starting"): void {
    this.item.text = textOf(look, this.last.progress);
    this.item.backgroundColor = lookOf(look).red
      ? new vscode.ThemeColor("statusBarItem.errorBackground")
      : undefined;
    this.item.tooltip = this.tooltip();
    this.item.accessibilityInformation = { label: `EvoKernel: ${this.last.text}` };
    this.item.show();
  }

  private tooltip(): vscode.MarkdownString {
    const tooltip = new vscode.MarkdownString();
    tooltip.appendMarkdown("**EvoKernel**\n\n");
    tooltip.appendText(`${this.last.text}\n`);
    const rows: [string, string][] = [
      [t("Verifier"), this.last.verifier],
      [t("Interpreter"), this.last.interpreter],
      [t("Server"), this.server],
      ...this.notes.map((note): [string, string] => [t("Passed over"), note]),
    ];
    for (const [name, value] of rows.filter(([, text]) => text !== "")) tooltip.appendText(`\n${name}: ${value}\n`);
    if (!vscode.workspace.isTrusted) tooltip.appendText(`\n${t("This workspace is not trusted: files are parsed only.")}\n`);
    return tooltip;
  }
}
