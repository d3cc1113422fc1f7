/** Virtual documents: the two sides of what is compared. */
import * as vscode from "vscode";
import { t } from "./l10n";
import type { FileChange } from "./review";

export const SCHEME = "evokernel-review";
const MOST_TEXTS = 200;

/** What one comparison shows; `id` is in the path of its documents. */
export interface Sides {
  readonly name: string;
  readonly before: vscode.Uri;
  readonly after: vscode.Uri;
}

export class Texts implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration: vscode.Disposable;
  private count = 0;

  constructor() {
    this.registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
    this.texts.clear();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? t("This proposal is no longer kept; ask for the diff again.");
  }

  /** A number for the documents that are shown together. */
  newId(): string {
    this.count += 1;
    return String(this.count);
  }

  /** Kept again under the same number, an open comparison shows the new text. */
  keep(id: string, { name, before, after }: FileChange): Sides {
    return { name, before: this.put(id, "before", name, before), after: this.put(id, "after", name, after) };
  }

  /** Both sides have one path, with the file's own name at its end: they are shown as what they are, and not as renamed. */
  private put(id: string, side: string, name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${id}/${name}`, query: side });
    const before = this.texts.get(uri.toString());
    this.texts.set(uri.toString(), text);
    if (before !== undefined && before !== text) this.changed.fire(uri);
    for (const oldest of this.texts.keys()) {
      if (this.texts.size <= MOST_TEXTS) break;
      this.texts.delete(oldest);
    }
    return uri;
  }
}

/** The number that `newId` gave for a document; undefined for one that is not ours. */
export function idOf(uri: vscode.Uri): string | undefined {
  return uri.scheme === SCHEME ? uri.path.split("/")[1] : undefined;
}

/** With a line, from 0, of the text after: opens there, and what is opened next does not take its place. */
export async function showDiff({ before, after }: Sides, title: string, line?: number): Promise<void> {
  const at = line === undefined ? undefined : new vscode.Position(line, 0);
  const options = at === undefined ? { preview: true } : { preview: false, selection: new vscode.Range(at, at) };
  await vscode.commands.executeCommand("vscode.diff", before, after, title, options);
}

/** All files in one editor where this VS Code has it, else the first one. */
export async function showDiffs(sides: readonly Sides[], title: string): Promise<void> {
  const [first] = sides;
  if (first === undefined) return;
  if (sides.length === 1) {
    await showDiff(first, `${title} (${first.name})`);
    return;
  }
  const rows = sides.map(({ before, after }) => [after, before, after]);
  await vscode.commands.executeCommand("vscode.changes", title, rows);
}
