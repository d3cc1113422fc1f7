/** Which place a command is about: the row that was clicked, the review in front, or the line of the cursor. */
import * as vscode from "vscode";
import type { Node } from "./kernelsView";
import type { Place } from "./review";

/** More actions than one line ever has: each is resolved, so that it carries its command. */
const RESOLVE_COUNT = 50;

/** Undefined for what names no place; menus pass a row of the tree, or the address of the file in front. */
export function givenPlace(given: unknown): Place | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  if ("kind" in given) return placeOfNode(given as Node);
  const { uri, regionId, name } = given as Partial<Record<keyof Place, unknown>>;
  if (typeof uri !== "string") return undefined;
  if (typeof regionId === "string") return { uri, regionId };
  return typeof name === "string" ? { uri, name } : undefined;
}

function placeOfNode(node: Node): Place | undefined {
  if (node.kind === "offer") return { uri: node.offer.uri, regionId: node.offer.regionId };
  return node.kind === "kernel" && node.call !== undefined ? { uri: node.call.uri, name: node.call.name } : undefined;
}

export interface Action {
  readonly title: string;
  readonly command: vscode.Command;
}

/** The server's code actions on the cursor's lines that run one of these commands. */
export async function actionsAt(editor: vscode.TextEditor, commands: readonly string[]): Promise<Action[]> {
  const found = await vscode.commands.executeCommand<(vscode.CodeAction | vscode.Command)[]>(
    "vscode.executeCodeActionProvider",
    editor.document.uri,
    editor.selection,
    vscode.CodeActionKind.RefactorRewrite.value,
    RESOLVE_COUNT,
  );
  return found.flatMap((action) =>
    "kind" in action && action.disabled === undefined && action.command !== undefined && commands.includes(action.command.command)
      ? [{ title: action.title, command: action.command }]
      : [],
  );
}

export interface NamedPlace {
  readonly title: string;
  readonly place: Place;
}

/** The places of those actions, each once. */
export async function placesAt(editor: vscode.TextEditor, commands: readonly string[]): Promise<NamedPlace[]> {
  const found = new Map<string, NamedPlace>();
  for (const { title, command } of await actionsAt(editor, commands)) {
    const place = givenPlace(command.arguments?.[0]);
    const key = JSON.stringify(place);
    if (place !== undefined && !found.has(key)) found.set(key, { title, place });
  }
  return [...found.values()];
}

export function pythonEditor(): vscode.TextEditor | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor?.document.languageId === "python" && editor.document.uri.scheme === "file" ? editor : undefined;
}

/** Shows a line of a file, in the column where code is. `line` is 0-based. */
export async function goTo(uri: string, line: number): Promise<void> {
  const at = new vscode.Position(line, 0);
  await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: new vscode.Range(at, at) });
}
