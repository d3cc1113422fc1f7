/** Wires the parts together; each of them is a file beside this one. */
import * as vscode from "vscode";
import { commandsWith } from "./answers";
import { kernelCommands } from "./commands";
import { DashboardPanel } from "./dashboardPanel";
import { readState, type DashboardState } from "./dashboardState";
import { debugInfo } from "./debugInfo";
import { Decisions } from "./decisions";
import { generateHere } from "./generate";
import { KernelsView } from "./kernelsView";
import { t, translateWith } from "./l10n";
import { chooseChip, LanguageStatus } from "./languageStatus";
import { showMenu } from "./menu";
import type { ShowDiffParams, StatusParams } from "./protocol";
import { watchInterpreter } from "./pythonExtension";
import { Reviews } from "./reviews";
import { API_KEY, askForSecret, clearSecret, describeSecrets, isSecret, VERIFIER_TOKEN } from "./secrets";
import { Server } from "./server";
import { Soon } from "./soon";
import { StatusItem } from "./status";
import { showDiff, Texts } from "./texts";
import { Variants } from "./variants";

const LOG_LINES = 100;
/** Pause in typing behind which a review that is open follows. */
const FOLLOW_MS = 300;

let running: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  translateWith((message, ...args) => vscode.l10n.t(message, ...args));
  const output = vscode.window.createOutputChannel("EvoKernel", { log: true });
  const item = new StatusItem();
  const texts = new Texts();
  const reviews = new Reviews(texts);
  const execute = (command: string, given: object): Promise<unknown> => server.execute(command, given);
  const decisions = new Decisions(reviews, execute);
  const following = new Soon(() => void decisions.follow(), FOLLOW_MS);
  const variants = new Variants(texts, execute);
  const kernels = new KernelsView(() => dashboardOf(server));
  const language = new LanguageStatus();
  const dashboard = new DashboardPanel(context.extensionUri, (command, ...given) => server.execute(command, ...given));
  const server = new Server(context.secrets, output, item, {
    status: (params: StatusParams): void => {
      item.update(params);
      language.update(params);
      dashboard.statusChanged(params);
      kernels.showOffers(params.offers ?? 0);
    },
    showDiff: (params) => void showProposal(texts, params),
    changed: () => {
      kernels.refreshSoon();
      dashboard.changed();
      following.ask();
    },
    review: (place) => void decisions.review(place),
    commands: commandsWith(decisions, variants),
  });
  running = server;
  context.subscriptions.push(output, item, language, dashboard, texts, reviews, kernels, server);
  context.subscriptions.push(...commands(context, server, item, kernels, output), ...events(context, server));
  context.subscriptions.push(following, vscode.workspace.onDidChangeTextDocument(following.ask), vscode.window.onDidChangeWindowState(following.ask));
  context.subscriptions.push(variants, ...kernelCommands(server, decisions, reviews, variants));
  context.subscriptions.push(...dashboardCommands(context, dashboard));
  void server.restart("the extension was activated");
  void watchInterpreter(output, () => void server.interpreterChanged()).then((watch) => {
    if (watch !== undefined) context.subscriptions.push(watch);
  });
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}

/** The tree has its kernels without a server too. */
async function dashboardOf(server: Server): Promise<DashboardState | undefined> {
  return server.isRunning ? readState(await server.execute("evokernel.dashboard", {})) : undefined;
}

async function showProposal(texts: Texts, { uri, original, proposed, title }: ShowDiffParams): Promise<void> {
  const name = uri.split("/").at(-1) ?? "";
  await showDiff(texts.keep(texts.newId(), { name, before: original, after: proposed }), title);
}

function events(context: vscode.ExtensionContext, server: Server): vscode.Disposable[] {
  return [
    vscode.workspace.onDidChangeConfiguration((event) => void server.settingsChanged(event)),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      server.activeEditorChanged(editor);
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.restart("the workspace is trusted now")),
    context.secrets.onDidChange(({ key }) => {
      if (isSecret(key)) void server.restart("a secret changed");
    }),
  ];
}

function dashboardCommands(context: vscode.ExtensionContext, dashboard: DashboardPanel): vscode.Disposable[] {
  return [
    vscode.commands.registerCommand("evokernel.openDashboard", () => {
      dashboard.open();
    }),
    vscode.commands.registerCommand("evokernel.chooseChip", () => chooseChip(context.extension.packageJSON)),
  ];
}

function commands(
  context: vscode.ExtensionContext,
  server: Server,
  item: StatusItem,
  kernels: KernelsView,
  output: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const secrets = context.secrets;
  const table: Readonly<Record<string, () => unknown>> = {
    menu: () => showMenu(menuActions(server, item)),
    generateHere,
    restart: () => server.restart("asked for"),
    showLog: () => {
      output.show();
    },
    copyDebugInfo: async () => {
      await vscode.env.clipboard.writeText(await gather(context, server, item));
      void vscode.window.setStatusBarMessage(t("EvoKernel: debug info copied."), 5_000);
    },
    setApiKey: () => askForSecret(secrets, API_KEY),
    clearApiKey: () => clearSecret(secrets, API_KEY),
    setVerifierToken: () => askForSecret(secrets, VERIFIER_TOKEN),
    clearVerifierToken: () => clearSecret(secrets, VERIFIER_TOKEN),
    refreshKernels: () => {
      kernels.refresh();
    },
  };
  return Object.entries(table).map(([name, run]) => vscode.commands.registerCommand(`evokernel.${name}`, run));
}

function menuActions(server: Server, item: StatusItem): Parameters<typeof showMenu>[0] {
  return {
    mode: item.mode,
    text: item.text,
    // The menu opens without a server too: that is when a person needs it.
    offers: async () => (await dashboardOf(server))?.offers ?? [],
    cancel: () => server.execute("evokernel.cancel", {}),
  };
}

async function gather(context: vscode.ExtensionContext, server: Server, item: StatusItem): Promise<string> {
  const manifest = context.extension.packageJSON as { readonly version: string };
  return debugInfo({
    extension: manifest.version,
    editor: `${vscode.env.appName} ${vscode.version}`,
    remote: vscode.env.remoteName ?? "",
    trusted: vscode.workspace.isTrusted,
    server: server.chosen,
    passedOver: server.passedOver.map(({ candidate, reason }) => `${candidate.how} (${reason})`),
    crashes: server.crashes,
    status: `${item.mode}: ${item.text}`,
    secrets: await describeSecrets(context.secrets),
    settings: server.told,
    traceback: server.lastTraceback,
    log: server.log.tail(LOG_LINES),
  });
}
