/** The timeline of a kernel's pipes: a page that the server wrote, shown in the editor. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { t } from "./l10n";
import { pageForEditor } from "./page";

export const TIMELINE = "evokernel.timeline";

/** Shows what the server answered to `evokernel.timeline`. */
export async function showTimeline(answer: unknown): Promise<void> {
  const path = (answer as { readonly path?: unknown } | null | undefined)?.path;
  if (typeof path !== "string" || path === "") return;
  const page = new TextDecoder().decode(await vscode.workspace.fs.readFile(vscode.Uri.file(path)));
  const panel = vscode.window.createWebviewPanel("evokernel.timeline", t("Timeline"), vscode.ViewColumn.Active, {
    enableScripts: true,
    localResourceRoots: [],
  });
  panel.webview.html = pageForEditor(page, randomBytes(18).toString("base64url"), isDark());
}

function isDark(): boolean {
  const { kind } = vscode.window.activeColorTheme;
  return kind === vscode.ColorThemeKind.Dark || kind === vscode.ColorThemeKind.HighContrast;
}
