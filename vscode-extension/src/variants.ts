/** All verified kernels of a region in a table, and the differences of any of them. */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Execute } from "./decisions";
import { latencyWords } from "./kernels";
import { t } from "./l10n";
import { changedFiles, readFiles, readVariants, type Place, type Variant } from "./review";
import { showDiffs, type Texts } from "./texts";
import { COMPARE_VARIANT, REVIEW_VARIANT, variantsPage, type VariantPlace } from "./variantsPage";

export const VARIANTS = "evokernel.variants";

export class Variants implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private all: readonly Variant[] = [];

  constructor(
    private readonly texts: Texts,
    private readonly execute: Execute,
  ) {}

  dispose(): void {
    this.panel?.dispose();
  }

  /** Shows what the server answered to `evokernel.variants`. */
  show(place: Place, answer: unknown): void {
    const all = readVariants(answer);
    if (all.length === 0) return;
    this.all = all;
    this.panel ??= this.newPanel();
    this.panel.webview.html = variantsPage(place, all, randomBytes(18).toString("base64url"), vscode.env.language);
    this.panel.reveal();
  }

  /** The files of two kernels, the one that was asked about after the other. */
  async compare({ sourceId, other, ...place }: VariantPlace): Promise<void> {
    const answer = await this.execute("evokernel.compare", { ...place, sourceId: other, other: sourceId });
    const files = changedFiles(readFiles((answer as { readonly files?: unknown } | null)?.files));
    const id = this.texts.newId();
    const title = [other, sourceId].map((known) => this.figure(known)).join(" ↔ ");
    await showDiffs(files.map((file) => this.texts.keep(id, file)), title);
  }

  private figure(sourceId: string | undefined): string {
    const variant = this.all.find((known) => known.sourceId === sourceId);
    return variant === undefined ? "" : latencyWords(variant);
  }

  private newPanel(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel("evokernel.variantsPage", t("Kernel Variants"), vscode.ViewColumn.Active, {
      enableScripts: false,
      enableCommandUris: [COMPARE_VARIANT, REVIEW_VARIANT],
      localResourceRoots: [],
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return panel;
  }
}
