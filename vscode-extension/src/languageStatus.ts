/** Beside the language of a Python file: its state, the chip that kernels are written for, and who verifies. */
import * as vscode from "vscode";
import { t } from "./l10n";
import { lookOf } from "./looks";
import type { StatusParams } from "./protocol";

const PYTHON: vscode.DocumentSelector = { language: "python", scheme: "file" };
const CHIP = "evokernel.chip";
/** How the empty setting is called. */
const OWN = (): string => t("the target's own");

export class LanguageStatus implements vscode.Disposable {
  private readonly state = item("evokernel.state", t("EvoKernel: state of this file"));
  private readonly chip = item("evokernel.chip", t("EvoKernel: chip"));
  private readonly verifier = item("evokernel.verifier", t("EvoKernel: verifier"));
  private readonly settings: vscode.Disposable;

  constructor() {
    this.state.command = { command: "evokernel.menu", title: t("Menu") };
    this.chip.command = { command: "evokernel.chooseChip", title: t("Choose") };
    this.verifier.command = { command: "evokernel.openDashboard", title: t("Dashboard") };
    this.state.text = "EvoKernel";
    this.showChip();
    this.verifier.text = t("Verifier: {0}", t("not known yet"));
    this.settings = vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(CHIP)) this.showChip();
    });
  }

  dispose(): void {
    for (const part of [this.state, this.chip, this.verifier, this.settings]) part.dispose();
  }

  update({ mode, text, verifier, chip, kind }: StatusParams): void {
    this.state.text = text;
    this.state.busy = mode === "analysing" || mode === "busy";
    this.state.severity = lookOf(mode).red ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information;
    if (chip !== undefined && chip !== "") this.showChip(kind === undefined ? chip : `${chip} (${kind})`);
    if (verifier !== "") this.verifier.text = t("Verifier: {0}", verifier);
  }

  /** The setting, until the server says which device that is. */
  private showChip(chip = vscode.workspace.getConfiguration().get(CHIP, "")): void {
    this.chip.text = t("Chip: {0}", chip === "" ? OWN() : chip);
  }
}

function item(id: string, name: string): vscode.LanguageStatusItem {
  const made = vscode.languages.createLanguageStatusItem(id, PYTHON);
  made.name = name;
  return made;
}

interface ChipSetting {
  readonly enum: readonly string[];
  readonly enumDescriptions: readonly string[];
}

/** Lets a person pick one of the chips that the setting lists. */
export async function chooseChip(manifest: unknown): Promise<void> {
  const { contributes } = manifest as { readonly contributes: { readonly configuration: { readonly properties: Readonly<Record<string, ChipSetting>> } } };
  const setting = contributes.configuration.properties[CHIP];
  const configuration = vscode.workspace.getConfiguration();
  const now = configuration.get(CHIP, "");
  const chips = (setting?.enum ?? []).map((chip, n) => ({
    chip,
    label: chip === "" ? OWN() : chip,
    description: chip === now ? t("now") : "",
    detail: setting?.enumDescriptions[n] ?? "",
  }));
  const chosen = await vscode.window.showQuickPick(chips, { title: t("Chip that kernels are written and timed for") });
  if (chosen === undefined || chosen.chip === now) return;
  const inWorkspace = vscode.workspace.workspaceFolders !== undefined;
  await configuration.update(CHIP, chosen.chip, inWorkspace ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global);
}
