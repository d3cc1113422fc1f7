/** Shows a kernel that waits for a decision: the change in a diff editor, its evidence beside it. */
import { randomBytes } from "node:crypto";
import * as path from "node:path";
import * as vscode from "vscode";
import { evidencePage, LINKED } from "./evidence";
import { t } from "./l10n";
import { changedFiles, changesPython, isDecidable, type Place, type Review } from "./review";
import { idOf, showDiff, showDiffs, type Sides, type Texts } from "./texts";

const EVIDENCE = "evokernel.evidence";
/** The diff needs more room than the page beside it. */
const LAYOUT = { orientation: 0, groups: [{ size: 0.66 }, { size: 0.34 }] };
const MOST_SHOWN = 20;

interface Shown {
  readonly review: Review;
  readonly title: string;
  readonly python: Sides;
  readonly files: readonly Sides[];
}

export class Reviews implements vscode.Disposable {
  private readonly shown = new Map<string, Shown>();
  private latest: Shown | undefined;
  private panel: vscode.WebviewPanel | undefined;
  private readonly watches: vscode.Disposable[];

  constructor(private readonly texts: Texts) {
    const look = (): void => {
      this.tellContext();
    };
    this.watches = [
      vscode.window.tabGroups.onDidChangeTabs(look),
      vscode.window.tabGroups.onDidChangeTabGroups(look),
    ];
    look();
  }

  dispose(): void {
    for (const watch of this.watches) watch.dispose();
    this.panel?.dispose();
  }

  /** The review whose diff or evidence is in front of the person. */
  get current(): Review | undefined {
    return this.inFront()?.review;
  }

  async show(review: Review): Promise<void> {
    await this.close(review);
    const id = this.texts.newId();
    const shown: Shown = {
      review,
      title: t("Review {0}", review.name),
      python: this.texts.keep(id, { name: path.posix.basename(vscode.Uri.parse(review.uri).path), ...sidesOf(review) }),
      files: changedFiles(review.files).map((file) => this.texts.keep(id, file)),
    };
    this.remember(id, shown);
    const alone = vscode.window.tabGroups.all.length === 1;
    await this.showChange(shown);
    this.showEvidence(review);
    if (alone && changesSomething(shown)) await vscode.commands.executeCommand("vscode.setEditorLayout", LAYOUT);
    this.tellContext();
  }

  /** The Python file where it changes, else the kernel's files. */
  private async showChange(shown: Shown): Promise<void> {
    if (changesPython(shown.review)) await showDiff(shown.python, shown.title, true);
    else await showDiffs(shown.files, shown.title);
  }

  /** All files of the kernel, or one of them. */
  async showFiles(name?: string): Promise<void> {
    const shown = this.inFront();
    if (shown === undefined) return;
    const files = shown.files.filter((file) => name === undefined || file.name === name);
    // Not in the evidence's own column, which would hide it.
    await vscode.commands.executeCommand("workbench.action.focusFirstEditorGroup");
    await showDiffs(files, shown.title);
  }

  /** Takes a decided review off the screen. */
  async close(place: Place): Promise<void> {
    const ids = [...this.shown].filter(([, { review }]) => isOf(review, place)).map(([id]) => id);
    const tabs = vscode.window.tabGroups.all
      .flatMap(({ tabs: all }) => all)
      .filter((tab) => ids.includes(this.idOfTab(tab) ?? ""));
    if (this.latest !== undefined && isOf(this.latest.review, place)) {
      this.panel?.dispose();
      this.latest = undefined;
    }
    if (tabs.length > 0) await vscode.window.tabGroups.close(tabs);
    for (const id of ids) this.shown.delete(id);
    this.tellContext();
  }

  private remember(id: string, shown: Shown): void {
    this.latest = shown;
    this.shown.set(id, shown);
    for (const oldest of this.shown.keys()) {
      if (this.shown.size <= MOST_SHOWN) break;
      this.shown.delete(oldest);
    }
  }

  private showEvidence(review: Review): void {
    this.panel ??= this.newPanel();
    this.panel.title = t("Evidence: {0}", review.name);
    this.panel.webview.html = evidencePage(review, randomBytes(18).toString("base64url"), vscode.env.language);
    this.panel.reveal(undefined, true);
  }

  private newPanel(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel(
      EVIDENCE,
      "EvoKernel",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: false, enableCommandUris: LINKED, localResourceRoots: [] },
    );
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.tellContext();
    });
    return panel;
  }

  private inFront(): Shown | undefined {
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    if (tab === undefined) return undefined;
    if (tab.input instanceof vscode.TabInputWebview) return tab.input.viewType.endsWith(EVIDENCE) ? this.latest : undefined;
    return this.shown.get(this.idOfTab(tab) ?? "");
  }

  /** An editor of several files does not say in this VS Code's interface which ones: its title does. */
  private idOfTab(tab: vscode.Tab): string | undefined {
    if (tab.input instanceof vscode.TabInputTextDiff) return idOf(tab.input.modified);
    if (tab.input !== undefined && !("textDiffs" in (tab.input as object))) return undefined;
    return [...this.shown].find(([, { title, files }]) => files.length > 1 && (tab.label === title || tab.label.startsWith(`${title} (`)))?.[0];
  }

  /** What the buttons, keys and menus of a review depend on. */
  private tellContext(): void {
    const review = this.current;
    const keys = {
      "evokernel.inReview": review !== undefined,
      "evokernel.canDecide": review !== undefined && isDecidable(review),
      "evokernel.reviewHasParts": (review?.parts.length ?? 0) > 0,
      "evokernel.reviewHasFiles": changedFiles(review?.files ?? []).length > 0,
    };
    for (const [key, value] of Object.entries(keys)) void vscode.commands.executeCommand("setContext", key, value);
  }
}

function changesSomething({ review, files }: Shown): boolean {
  return changesPython(review) || files.length > 0;
}

function sidesOf({ before, after }: Review): { before: string; after: string } {
  return { before, after };
}

function isOf(review: Review, { uri, regionId, name }: Place): boolean {
  return review.uri === uri && (regionId === undefined ? review.name === name : review.regionId === regionId);
}
