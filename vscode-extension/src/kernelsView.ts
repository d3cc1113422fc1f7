/** The tree view: jobs, kernels that wait for a decision, and a kernel for each package below `evokernel_kernels/`. */
import * as path from "node:path";
import * as vscode from "vscode";
import type { DashboardState } from "./dashboardState";
import { isReadable, readManifest } from "./kernels";
import { t } from "./l10n";
import { Soon } from "./soon";
import { groupRow, groups, jobRow, kernelRow, offerRow } from "./tree";
import type { GroupNode, JobNode, KernelNode, OfferNode, Package, Row } from "./tree";

const MANIFESTS = "**/evokernel_kernels/*/kernel.json";
const MOST_KERNELS = 500;
/** Writing a package touches several files; they make one refresh. */
const PAUSE_MS = 300;

/** Beside the kernel's own files. */
const FILES: readonly [string, () => string][] = [
  ["reference.py", () => t("reference")],
  ["kernel.json", () => t("manifest")],
];

interface FileNode {
  readonly kind: "file";
  readonly file: vscode.Uri;
  readonly what: string;
}

export type Node = GroupNode | OfferNode | JobNode | KernelNode | FileNode;

export class KernelsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly watcher: vscode.FileSystemWatcher;
  private readonly later = new Soon(() => {
    this.refresh();
  }, PAUSE_MS);

  /** `ask` gives what the server knows; undefined where there is no server. */
  constructor(private readonly ask: () => Promise<DashboardState | undefined>) {
    this.view = vscode.window.createTreeView("evokernel.kernels", { treeDataProvider: this });
    this.watcher = vscode.workspace.createFileSystemWatcher(MANIFESTS);
    this.watcher.onDidCreate(this.later.ask);
    this.watcher.onDidChange(this.later.ask);
    this.watcher.onDidDelete(this.later.ask);
  }

  dispose(): void {
    this.later.dispose();
    this.watcher.dispose();
    this.view.dispose();
    this.changed.dispose();
  }

  refresh(): void {
    this.changed.fire(undefined);
  }

  refreshSoon(): void {
    this.later.ask();
  }

  /** The badge counts kernels that wait for a decision. */
  showOffers(count: number): void {
    const tooltip = count === 1 ? t("1 kernel is pending") : t("{0} kernels are pending", count);
    const before = this.view.badge?.value ?? 0;
    this.view.badge = count > 0 ? { value: count, tooltip } : undefined;
    if (count !== before) this.refreshSoon();
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node === undefined) return groups(await this.ask(), await packages());
    if (node.kind === "group") return [...node.children];
    return node.kind === "kernel" ? files(vscode.Uri.parse(node.folder), node.kernel.sources) : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if (node.kind === "file") return fileItem(node);
    const row = rowOf(node);
    const item = new vscode.TreeItem(row.label, foldOf(node));
    item.id = idOf(node);
    item.description = row.description;
    item.contextValue = row.context;
    item.tooltip = tooltipOf(row);
    if (row.icon !== "") item.iconPath = new vscode.ThemeIcon(row.icon);
    // Opening a review is what a click on a waiting kernel is for.
    if (node.kind === "offer") item.command = { command: "evokernel.reviewKernel", title: t("Review"), arguments: [node] };
    return item;
  }
}

function rowOf(node: Exclude<Node, FileNode>): Row {
  switch (node.kind) {
    case "group":
      return groupRow(node);
    case "offer":
      return offerRow(node);
    case "job":
      return jobRow(node);
    case "kernel":
      return kernelRow(node);
  }
}

function foldOf(node: Node): vscode.TreeItemCollapsibleState {
  if (node.kind === "group") return vscode.TreeItemCollapsibleState.Expanded;
  return node.kind === "kernel" ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None;
}

/** Stays the same over refreshes, so that what was unfolded stays so. */
function idOf(node: Exclude<Node, FileNode>): string {
  switch (node.kind) {
    case "group":
      return node.group;
    case "offer":
      return `offer ${node.offer.uri} ${node.offer.regionId}`;
    case "job":
      return `job ${node.job.id}`;
    case "kernel":
      return node.folder;
  }
}

/** Names and reasons are others' words: plain text, in which no link runs a command. */
function tooltipOf({ label, tooltip }: Row): vscode.MarkdownString | undefined {
  if (tooltip.length === 0) return undefined;
  const shown = new vscode.MarkdownString();
  for (const line of [label, ...tooltip]) shown.appendText(`${line}\n\n`);
  return shown;
}

async function packages(): Promise<Package[]> {
  const manifests = await vscode.workspace.findFiles(MANIFESTS, undefined, MOST_KERNELS);
  return (await Promise.all(manifests.map(readPackage))).filter((found) => found !== undefined);
}

async function readPackage(manifest: vscode.Uri): Promise<Package | undefined> {
  const folder = vscode.Uri.joinPath(manifest, "..");
  const bytes = await read(manifest);
  if (bytes === undefined) return undefined;
  const kernel = readManifest(path.posix.basename(folder.path), new TextDecoder().decode(bytes));
  return kernel === undefined ? undefined : { kernel, folder: folder.toString() };
}

/** Undefined for what is not read; a package may also be removed between the search and the reading. */
async function read(manifest: vscode.Uri): Promise<Uint8Array | undefined> {
  try {
    if (!isReadable(await vscode.workspace.fs.stat(manifest))) return undefined;
    return await vscode.workspace.fs.readFile(manifest);
  } catch {
    return undefined;
  }
}

async function files(folder: vscode.Uri, sources: readonly string[]): Promise<FileNode[]> {
  const present = new Set((await vscode.workspace.fs.readDirectory(folder)).map(([name]) => name));
  const shown: [string, () => string][] = [...sources.map((name): [string, () => string] => [name, () => t("kernel source")]), ...FILES];
  return shown.filter(([name]) => present.has(name)).map(([name, what]) => ({
    kind: "file",
    file: vscode.Uri.joinPath(folder, name),
    what: what(),
  }));
}

function fileItem({ file, what }: FileNode): vscode.TreeItem {
  const item = new vscode.TreeItem(file, vscode.TreeItemCollapsibleState.None);
  item.description = what;
  item.command = { command: "vscode.open", title: t("Open"), arguments: [file] };
  return item;
}
