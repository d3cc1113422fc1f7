/** The interpreter that a person selected in the Python extension, where that extension is there. */
import * as vscode from "vscode";

interface Environments {
  getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
  resolveEnvironment(path: string): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
}

async function environments(): Promise<Environments | undefined> {
  const extension = vscode.extensions.getExtension<{ environments?: Environments }>("ms-python.python");
  if (extension === undefined) return undefined;
  const api = extension.isActive ? extension.exports : await extension.activate();
  return api.environments;
}

/** Falls back to the setting `python.defaultInterpreterPath`; undefined when neither names a file. */
export async function selectedInterpreter(log: vscode.LogOutputChannel): Promise<string | undefined> {
  try {
    const api = await environments();
    if (api !== undefined) {
      const active = api.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
      return (await api.resolveEnvironment(active.path))?.executable.uri?.fsPath;
    }
  } catch (error) {
    log.warn(`The Python extension did not name its interpreter: ${String(error)}`);
  }
  const fallback = vscode.workspace.getConfiguration("python").get<string>("defaultInterpreterPath");
  return fallback === undefined || fallback === "" || fallback === "python" ? undefined : fallback;
}

/** Calls `changed` when another interpreter is selected. */
export async function watchInterpreter(
  log: vscode.LogOutputChannel,
  changed: () => void,
): Promise<vscode.Disposable | undefined> {
  try {
    return (await environments())?.onDidChangeActiveEnvironmentPath(changed);
  } catch (error) {
    log.warn(`A change of the Python extension's interpreter will not be noticed: ${String(error)}`);
    return undefined;
  }
}
