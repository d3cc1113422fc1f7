/** The menu behind the status item. */
import * as vscode from "vscode";
import type { DashboardOffer } from "./dashboardState";
import { t } from "./l10n";
import type { Mode } from "./protocol";

interface Entry extends vscode.QuickPickItem {
  readonly run?: () => Thenable<unknown>;
}

export interface MenuActions {
  readonly mode: Mode;
  readonly text: string;
  readonly offers: () => Promise<readonly DashboardOffer[]>;
  readonly cancel: () => Promise<unknown>;
}

export async function showMenu(actions: MenuActions): Promise<void> {
  const offers = await actions.offers();
  const chosen = await vscode.window.showQuickPick<Entry>(entries(actions, offers), {
    title: "EvoKernel",
    placeHolder: actions.text,
  });
  await chosen?.run?.();
}

function entries(actions: MenuActions, offers: readonly DashboardOffer[]): Entry[] {
  return [
    ...offers.map((offer) => ({
      label: `$(diff) ${t("Review {0}", offer.name)}`,
      description: offer.words,
      run: () => vscode.commands.executeCommand("evokernel.reviewKernel", offer),
    })),
    ...(actions.mode === "busy" ? [{ label: `$(stop-circle) ${t("Cancel what is running")}`, run: actions.cancel }] : []),
    entry(`$(zap) ${t("Generate kernel at cursor")}`, "evokernel.generateHere"),
    entry(`$(dashboard) ${t("Open dashboard")}`, "evokernel.openDashboard"),
    entry(`$(list-tree) ${t("Show kernels")}`, "evokernel.kernels.focus"),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    entry(`$(key) ${t("Set API key")}`, "evokernel.setApiKey"),
    entry(`$(key) ${t("Set verifier token")}`, "evokernel.setVerifierToken"),
    entry(`$(gear) ${t("Open settings")}`, "workbench.action.openSettings", "@ext:evokernel.evokernel"),
    { label: "", kind: vscode.QuickPickItemKind.Separator },
    entry(`$(output) ${t("Show log")}`, "evokernel.showLog"),
    entry(`$(copy) ${t("Copy debug info")}`, "evokernel.copyDebugInfo"),
    entry(`$(debug-restart) ${t("Restart server")}`, "evokernel.restart"),
  ];
}

function entry(label: string, command: string, ...given: unknown[]): Entry {
  return { label, run: () => vscode.commands.executeCommand(command, ...given) };
}
