/** The dashboard in the editor: one panel, which asks the server while it is seen. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Asked } from "./dashboardPage";
import { shell } from "./dashboardShell";
import { readState } from "./dashboardState";
import type { Message, Sent } from "./dashboardView";
import { t } from "./l10n";
import type { StatusParams } from "./protocol";

const TYPE = "evokernel.dashboard";
/** Commands of the server that a button stands for; VS Code runs them, so that what they show is shown. */
const RUNS = { review: "evokernel.review", timeline: "evokernel.timeline", refine: "evokernel.refineNow", cancel: "evokernel.cancel" } as const;

export class DashboardPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private readonly serializer: vscode.Disposable;
  private missed = false;
  private asking = false;
  private again = false;

  /** `ask` runs a command of the server. */
  constructor(
    private readonly extension: vscode.Uri,
    private readonly ask: (command: string, ...given: unknown[]) => Promise<unknown>,
  ) {
    this.serializer = vscode.window.registerWebviewPanelSerializer(TYPE, {
      deserializeWebviewPanel: (panel) => {
        this.fill(panel);
        return Promise.resolve();
      },
    });
  }

  dispose(): void {
    this.serializer.dispose();
    this.panel?.dispose();
  }

  open(): void {
    if (this.panel === undefined) this.fill(vscode.window.createWebviewPanel(TYPE, "EvoKernel", vscode.ViewColumn.Active));
    else this.panel.reveal();
  }

  /** The server says that something changed; a panel that is not seen asks when it is. */
  changed(): void {
    if (this.panel?.visible === true) void this.refresh();
    else this.missed = true;
  }

  statusChanged({ mode, text }: StatusParams): void {
    this.send({ type: "status", status: { mode, text } });
  }

  private fill(panel: vscode.WebviewPanel): void {
    this.panel = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "evokernel.svg");
    const { webview } = panel;
    const place = (...parts: string[]): string =>
      webview.asWebviewUri(vscode.Uri.joinPath(this.extension, ...parts)).toString();
    webview.options = {
      enableScripts: true,
      localResourceRoots: [vscode.Uri.joinPath(this.extension, "media"), vscode.Uri.joinPath(this.extension, "out")],
    };
    webview.onDidReceiveMessage((message: Sent) => {
      void this.heard(message);
    });
    panel.onDidChangeViewState(() => {
      if (panel.visible && this.missed) void this.refresh();
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    webview.html = shell({
      nonce: randomBytes(18).toString("base64url"),
      source: webview.cspSource,
      script: place("out", "dashboard.js"),
      style: place("media", "dashboard.css"),
      locale: vscode.env.language,
      words: vscode.l10n.bundle ?? {},
    });
  }

  private async heard(message: Sent): Promise<void> {
    if (message.type === "listening") {
      await this.refresh();
      return;
    }
    try {
      await this.run(message);
    } catch (error) {
      const said = `EvoKernel: ${error instanceof Error ? error.message : String(error)}`;
      void vscode.window.showErrorMessage(said);
    }
  }

  private async run({ action, argument }: Asked): Promise<void> {
    switch (action) {
      case "refresh":
        await this.refresh();
        return;
      case "settings":
        await vscode.commands.executeCommand("workbench.action.openSettings", "@ext:evokernel.evokernel");
        return;
      case "open":
        await open(String(argument["uri"]), Number(argument["line"]));
        return;
      case "forget":
        await this.forget(String(argument["what"]));
        return;
      case "review":
      case "timeline":
      case "refine":
        // the server speaks of open files
        await vscode.workspace.openTextDocument(vscode.Uri.parse(String(argument["uri"])));
        await vscode.commands.executeCommand(RUNS[action], argument);
        return;
      case "cancel":
        await vscode.commands.executeCommand(RUNS[action], argument);
    }
  }

  private async forget(what: string): Promise<void> {
    const everything = what === "all";
    const question = everything
      ? t("Delete everything that EvoKernel's memory holds: kernels, verdicts, experience and your decisions?")
      : t("Delete your decisions and learned preferences? Kernels that you rejected may be offered again.");
    const yes = t("Delete");
    const detail = t("This cannot be undone. Kernels in your code stay.");
    if ((await vscode.window.showWarningMessage(question, { modal: true, detail }, yes)) !== yes) return;
    const answer = (await this.ask("evokernel.forget", { what })) as { readonly status?: string; readonly message?: string };
    const said = `EvoKernel: ${answer.message ?? ""}`;
    if (answer.status === "forgotten") void vscode.window.setStatusBarMessage(said, 8_000);
    await this.refresh();
  }

  /** Asks for the state; what is asked for meanwhile is one further question. */
  private async refresh(): Promise<void> {
    this.again = this.asking;
    if (this.asking) return;
    this.asking = true;
    this.missed = false;
    try {
      const state = readState(await this.ask("evokernel.dashboard", {}));
      this.send(state === undefined ? { type: "problem", problem: t("This server knows no dashboard: update it.") } : { type: "state", state });
    } catch (error) {
      this.missed = true;
      this.send({ type: "problem", problem: error instanceof Error ? error.message : String(error) });
    } finally {
      this.asking = false;
    }
    if (this.again) await this.refresh();
  }

  private send(message: Message): void {
    void this.panel?.webview.postMessage(message);
  }
}

async function open(uri: string, line: number): Promise<void> {
  const at = new vscode.Position(line, 0);
  await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: new vscode.Range(at, at) });
}
