/** The target that a person chose by generating a kernel in it: the workspace's setting from then on. */
import * as vscode from "vscode";

const TARGET = "evokernel.target";

/** What *Generate Triton kernel* answers has the target, where the server changed to it. */
export async function keepTarget(answer: unknown): Promise<void> {
  const { target } = (answer ?? {}) as { readonly target?: unknown };
  const configuration = vscode.workspace.getConfiguration();
  if (typeof target !== "string" || target === "" || configuration.get(TARGET) === target) return;
  const inWorkspace = vscode.workspace.workspaceFolders !== undefined;
  await configuration.update(TARGET, target, inWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
