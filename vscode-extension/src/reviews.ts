/** Shows a kernel that waits for a decision: the change in a diff editor, its evidence beside it. */
import { randomBytes } from "node:crypto";
import * as path from "node:path";
import * as vscode from "vscode";
import { evidencePage, LINKED } from "./evidence";
import { t } from "./l10n";
import { changedFiles, changesPython, changesSomething, isDecidable, readReview, type Place, type Review } from "./review";
import { idOf, showDiff, showDiffs, type Sides, type Texts } from "./texts";

const EVIDENCE = "evokernel.evidence";
/** In a window of 1,600 pixels the diff has less than 900, below which VS Code shows its two sides in one column. */
const LAYOUT = { orientation: 0, groups: [{ size: 0.56 }, { size: 0.44 }] };
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
  private readonly told = new Map<string, boolean>();

  constructor(private readonly texts: Texts) {
    const look = (): void => {
      this.tellContext();
    };
    this.watches = [
      vscode.window.tabGroups.onDidChangeTabs(look),
      vscode.window.tabGroups.onDidChangeTabGroups(look),
      vscode.window.onDidChangeVisibleTextEditors(look),
      vscode.window.onDidChangeTextEditorVisibleRanges(look),
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
      ...this.sides(id, review),
    };
    this.remember(id, shown);
    const alone = vscode.window.tabGroups.all.length === 1;
    await open(shown);
    this.showEvidence(review);
    if (alone && changesSomething(review)) await vscode.commands.executeCommand("vscode.setEditorLayout", LAYOUT);
    this.tellContext();
  }

  /** Brings back what a decision is about. */
  async showChange(): Promise<void> {
    const shown = this.inFront();
    if (shown === undefined) return;
    await intoFirstColumn();
    await open(shown);
  }

  /** All files of the kernel, or one of them. */
  async showFiles(name?: string): Promise<void> {
    const shown = this.inFront();
    if (shown === undefined) return;
    const files = shown.files.filter((file) => name === undefined || file.name === name);
    await intoFirstColumn();
    await showDiffs(files, shown.title);
  }

  /** Shows of each review that is on the screen what `ask` says of it by now: the file as it is, or why it holds no more. */
  async follow(ask: (review: Review) => Promise<unknown>): Promise<void> {
    const open = new Set(vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map((tab) => this.idOfTab(tab))));
    for (const [id, shown] of [...this.shown]) {
      if (!open.has(id) && (this.panel === undefined || shown !== this.latest)) continue;
      const now = followed(shown.review, await ask(shown.review));
      if (now !== undefined && this.shown.get(id) === shown) this.replace(id, shown, now);
    }
    this.tellContext();
  }

  private replace(id: string, shown: Shown, review: Review): void {
    const now = { ...shown, ...this.sides(id, review), review };
    this.shown.set(id, now);
    if (this.latest !== shown) return;
    this.latest = now;
    if (this.panel !== undefined) this.fill(this.panel, review);
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

  private sides(id: string, review: Review): Pick<Shown, "python" | "files"> {
    const name = path.posix.basename(vscode.Uri.parse(review.uri).path);
    return {
      python: this.texts.keep(id, { name, before: review.before, after: review.after }),
      files: changedFiles(review.files).map((file) => this.texts.keep(id, file)),
    };
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
    this.fill(this.panel, review);
    this.panel.reveal(undefined, true);
  }

  private fill(panel: vscode.WebviewPanel, review: Review): void {
    panel.title = t("Evidence: {0}", review.name);
    panel.webview.html = evidencePage(review, randomBytes(18).toString("base64url"), vscode.env.language);
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
    const shown = this.inFront();
    const review = shown?.review;
    const keys = {
      "evokernel.inReview": review !== undefined,
      "evokernel.canDecide": review !== undefined && review.stale === "" && isDecidable(review),
      "evokernel.changeInView": shown !== undefined && isChangeInView(shown),
      "evokernel.reviewHasParts": (review?.parts.length ?? 0) > 0,
      "evokernel.reviewHasFiles": changedFiles(review?.files ?? []).length > 0,
    };
    for (const [key, value] of Object.entries(keys)) {
      if (this.told.get(key) === value) continue;
      this.told.set(key, value);
      void vscode.commands.executeCommand("setContext", key, value);
    }
  }
}

/** The Python file at its first changed line where it changes, else the kernel's files. */
async function open({ review, python, files, title }: Shown): Promise<void> {
  if (changesPython(review)) await showDiff(python, title, review.changeLine);
  else await showDiffs(files, title);
}

/** Not in the evidence's own column, which would hide it. */
async function intoFirstColumn(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.focusFirstEditorGroup");
}

/** Whether the first changed line can be seen; of files of the kernel, whether one of them can. */
function isChangeInView({ review, python, files }: Shown): boolean {
  const [sides, line] = changesPython(review) ? [[python], review.changeLine] : [files, undefined];
  const changed = new Set(sides.map(({ after }) => after.toString()));
  return vscode.window.visibleTextEditors.some(
    ({ document, visibleRanges }) =>
      changed.has(document.uri.toString()) &&
      (line === undefined || visibleRanges.some(({ start, end }) => start.line <= line && line <= end.line)),
  );
}

/** A review after what the server answered of it; undefined where that is what it shows. */
function followed(review: Review, answer: unknown): Review | undefined {
  const { status, message } = (answer ?? {}) as { readonly status?: unknown; readonly message?: unknown };
  const stale = status === "stale" && typeof message === "string" ? { ...review, stale: message } : undefined;
  const now = readReview(answer) ?? stale;
  return now === undefined || JSON.stringify(now) === JSON.stringify(review) ? undefined : now;
}

function isOf(review: Review, { uri, regionId, name }: Place): boolean {
  return review.uri === uri && (regionId === undefined ? review.name === name : review.regionId === regionId);
}
