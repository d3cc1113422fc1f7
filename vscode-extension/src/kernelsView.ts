/** The tree of applied kernels: one per package below `evokernel_kernels/`, its files below it. */
import * as path from "node:path";
import * as vscode from "vscode";
import { evidence, isReadable, latencyLine, readManifest, type Kernel } from "./kernels";
import { t } from "./l10n";

const MANIFESTS = "**/evokernel_kernels/*/kernel.json";
const MOST_KERNELS = 500;
/** Writing a package touches several files; they make one refresh. */
const PAUSE_MS = 300;

const FILES: readonly [string, () => string][] = [
  ["op_kernel.cpp", () => t("device kernel")],
  ["tiling.h", () => t("tiling")],
  ["reference.py", () => t("reference")],
  ["kernel.json", () => t("manifest")],
];

interface KernelNode {
  readonly kind: "kernel";
  readonly kernel: Kernel;
  readonly folder: vscode.Uri;
}

interface FileNode {
  readonly kind: "file";
  readonly file: vscode.Uri;
  readonly what: string;
}

type Node = KernelNode | FileNode;

export class KernelsView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Node>;
  private readonly watcher: vscode.FileSystemWatcher;
  private timer: NodeJS.Timeout | undefined;

  constructor() {
    this.view = vscode.window.createTreeView("evokernel.kernels", { treeDataProvider: this });
    this.watcher = vscode.workspace.createFileSystemWatcher(MANIFESTS);
    const later = (): void => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        this.refresh();
      }, PAUSE_MS);
    };
    this.watcher.onDidCreate(later);
    this.watcher.onDidChange(later);
    this.watcher.onDidDelete(later);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.watcher.dispose();
    this.view.dispose();
    this.changed.dispose();
  }

  refresh(): void {
    this.changed.fire(undefined);
  }

  /** The badge counts faster kernels that wait for a decision. */
  showOffers(count: number): void {
    const tooltip = count === 1 ? t("1 kernel waits for you") : t("{0} kernels wait for you", count);
    this.view.badge = count > 0 ? { value: count, tooltip } : undefined;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node === undefined) return this.kernels();
    return node.kind === "kernel" ? files(node.folder) : [];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return node.kind === "kernel" ? kernelItem(node) : fileItem(node);
  }

  private async kernels(): Promise<KernelNode[]> {
    const manifests = await vscode.workspace.findFiles(MANIFESTS, undefined, MOST_KERNELS);
    const nodes = await Promise.all(manifests.map(readNode));
    return nodes
      .filter((node) => node !== undefined)
      .sort((left, right) => left.kernel.name.localeCompare(right.kernel.name));
  }
}

async function readNode(manifest: vscode.Uri): Promise<KernelNode | undefined> {
  const folder = vscode.Uri.joinPath(manifest, "..");
  const bytes = await read(manifest);
  if (bytes === undefined) return undefined;
  const kernel = readManifest(path.posix.basename(folder.path), new TextDecoder().decode(bytes));
  return kernel === undefined ? undefined : { kind: "kernel", kernel, folder };
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

async function files(folder: vscode.Uri): Promise<FileNode[]> {
  const present = new Set((await vscode.workspace.fs.readDirectory(folder)).map(([name]) => name));
  return FILES.filter(([name]) => present.has(name)).map(([name, what]) => ({
    kind: "file",
    file: vscode.Uri.joinPath(folder, name),
    what: what(),
  }));
}

function kernelItem({ kernel, folder }: KernelNode): vscode.TreeItem {
  const item = new vscode.TreeItem(kernel.name, vscode.TreeItemCollapsibleState.Collapsed);
  item.id = folder.toString();
  item.description = latencyLine(kernel);
  item.iconPath = new vscode.ThemeIcon("zap");
  const tooltip = new vscode.MarkdownString();
  tooltip.appendMarkdown(`**${kernel.name}**\n\n`);
  for (const line of evidence(kernel)) tooltip.appendText(`${line}\n\n`);
  item.tooltip = tooltip;
  return item;
}

function fileItem({ file, what }: FileNode): vscode.TreeItem {
  const item = new vscode.TreeItem(file, vscode.TreeItemCollapsibleState.None);
  item.description = what;
  item.command = { command: "vscode.open", title: t("Open"), arguments: [file] };
  return item;
}
