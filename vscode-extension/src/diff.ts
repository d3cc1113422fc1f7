/** Virtual documents for the two sides of a proposed change. */
import * as path from "node:path";
import * as vscode from "vscode";
import { t } from "./l10n";
import type { ShowDiffParams } from "./protocol";

const SCHEME = "evokernel-diff";
const KEPT_DIFFS = 20;

export class DiffDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly registration: vscode.Disposable;
  private count = 0;

  constructor() {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  dispose(): void {
    this.registration.dispose();
    this.texts.clear();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? t("This proposal is no longer kept; ask for the diff again.");
  }

  async show(params: ShowDiffParams): Promise<void> {
    this.count += 1;
    const original = this.keep("original", params.uri, params.original);
    const proposed = this.keep("proposed", params.uri, params.proposed);
    await vscode.commands.executeCommand("vscode.diff", original, proposed, params.title, { preview: true });
  }

  /** The file's own name is kept at the end, so that both sides are shown as what they are. */
  private keep(side: string, uri: string, text: string): vscode.Uri {
    const name = path.posix.basename(vscode.Uri.parse(uri).path);
    const kept = vscode.Uri.from({ scheme: SCHEME, path: `/${this.count}/${side}/${name}` });
    this.texts.set(kept.toString(), text);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= 2 * KEPT_DIFFS) break;
      this.texts.delete(oldest);
    }
    return kept;
  }
}
