/** All verified kernels of a region: what sets them apart, their differences, and a way to install any of them. */
import * as vscode from "vscode";
import type { Execute } from "./decisions";
import { digits, sourceWord } from "./kernels";
import { t } from "./l10n";
import { readFiles, readVariants, changedFiles, type Place, type Variant } from "./review";
import { showDiffs, type Texts } from "./texts";
import { comparedWith, variantRow } from "./variantRow";

export const VARIANTS = "evokernel.variants";

interface Item extends vscode.QuickPickItem {
  readonly variant: Variant;
}

export class Variants {
  constructor(
    private readonly texts: Texts,
    private readonly execute: Execute,
  ) {}

  /** Shows what the server answered to `evokernel.variants`. Enter shows a difference; the button installs. */
  show(place: Place, answer: unknown): void {
    const all = readVariants(answer);
    if (all.length === 0) return;
    const install: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("check"), tooltip: t("Accept this kernel") };
    const picker = vscode.window.createQuickPick<Item>();
    picker.title = t("Verified kernels of this code");
    picker.placeholder = t("Enter shows how it differs; the check mark accepts it");
    picker.matchOnDescription = true;
    picker.matchOnDetail = true;
    picker.items = all.map((variant) => ({ ...variantRow(variant), variant, buttons: variant.installed ? [] : [install] }));
    picker.onDidTriggerItemButton(({ item }) => {
      picker.hide();
      void this.execute("evokernel.apply", { ...place, sourceId: item.variant.sourceId });
    });
    picker.onDidAccept(() => {
      const chosen = picker.selectedItems[0];
      picker.hide();
      if (chosen !== undefined) void this.compare(place, chosen.variant, all);
    });
    picker.onDidHide(() => {
      picker.dispose();
    });
    picker.show();
  }

  private async compare(place: Place, variant: Variant, all: readonly Variant[]): Promise<void> {
    const other = comparedWith(variant, all);
    if (other === undefined) {
      void vscode.window.showInformationMessage(t("EvoKernel: there is no other kernel to compare this one with."));
      return;
    }
    const answer = await this.execute("evokernel.compare", { ...place, sourceId: other.sourceId, other: variant.sourceId });
    const files = changedFiles(readFiles((answer as { readonly files?: unknown } | null)?.files));
    const id = this.texts.newId();
    const title = `${digits(other.us)} ↔ ${digits(variant.us)} µs ${sourceWord(variant.source)}`;
    await showDiffs(files.map((file) => this.texts.keep(id, file)), title);
    const install = t("Accept This Kernel");
    if (variant.installed) return;
    const said = t("EvoKernel: accept the kernel of {0}?", variantRow(variant).label);
    if ((await vscode.window.showInformationMessage(said, install)) === install) {
      await this.execute("evokernel.apply", { ...place, sourceId: variant.sourceId });
    }
  }
}
