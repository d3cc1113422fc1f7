/** The two secrets. They live in VS Code's SecretStorage and reach the server by environment only. */
import * as vscode from "vscode";
import { t } from "./l10n";

interface Secret {
  readonly key: string;
  readonly variable: string;
  /** English, as debug info names it. */
  readonly label: string;
}

export const API_KEY: Secret = {
  key: "evokernel.apiKey",
  variable: "EVOKERNEL_API_KEY",
  label: "API key",
};

export const VERIFIER_TOKEN: Secret = {
  key: "evokernel.verifierToken",
  variable: "EVOKERNEL_VERIFIER_TOKEN",
  label: "Verifier token",
};

const SECRETS = [API_KEY, VERIFIER_TOKEN];

function titleOf(secret: Secret): string {
  return secret === API_KEY ? t("API key") : t("Verifier token");
}

function promptOf(secret: Secret): string {
  return secret === API_KEY
    ? t("Key for the endpoint in evokernel.model.baseUrl. It is kept in the system's secret storage.")
    : t("Bearer token for the verifier in evokernel.verifier.url. It is kept in the system's secret storage.");
}

/** Environment variables of the secrets that are set. */
export async function secretEnvironment(storage: vscode.SecretStorage): Promise<Record<string, string>> {
  const environment: Record<string, string> = {};
  for (const secret of SECRETS) {
    const value = await storage.get(secret.key);
    if (value !== undefined) environment[secret.variable] = value;
  }
  return environment;
}

/** `API key: set`, never the value. */
export async function describeSecrets(storage: vscode.SecretStorage): Promise<string[]> {
  const kept = await Promise.all(SECRETS.map((secret) => storage.get(secret.key)));
  return SECRETS.map((secret, index) => `${secret.label}: ${kept[index] === undefined ? "not set" : "set"}`);
}

/** True when a value was stored; false when the person cancelled. */
export async function askForSecret(storage: vscode.SecretStorage, secret: Secret): Promise<boolean> {
  const value = await vscode.window.showInputBox({
    title: `EvoKernel: ${titleOf(secret)}`,
    prompt: promptOf(secret),
    password: true,
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? t("Type a value, or press Escape to leave it unchanged.") : undefined),
  });
  if (value === undefined) return false;
  await storage.store(secret.key, value.trim());
  return true;
}

export async function clearSecret(storage: vscode.SecretStorage, secret: Secret): Promise<void> {
  await storage.delete(secret.key);
  void vscode.window.setStatusBarMessage(t("EvoKernel: {0} cleared.", titleOf(secret)), 5_000);
}

export function isSecret(key: string): boolean {
  return SECRETS.some((secret) => secret.key === key);
}
