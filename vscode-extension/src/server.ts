/** Keeps a server running: chooses its command, starts it, and starts it again when it crashes. */
import * as vscode from "vscode";
import { Backoff } from "./backoff";
import { Connection } from "./client";
import { candidates, choose, describe, type Candidate, type PassedOver } from "./fallback";
import { middleware, type Commands } from "./middleware";
import { attempt } from "./probe";
import { install } from "./install";
import { t } from "./l10n";
import {
  ActiveDocumentNotification,
  ChangedNotification,
  ReviewNotification,
  ShowDiffNotification,
  StatusNotification,
  type ShowDiffParams,
  type StatusParams,
} from "./protocol";
import type { Place } from "./review";
import { selectedInterpreter } from "./pythonExtension";
import { secretEnvironment } from "./secrets";
import { ServerLog } from "./serverlog";
import { needsRestart, serverSettings, type ServerSettings } from "./settings";
import type { StatusItem } from "./status";

/** From this crash on in a row, a person is told; before it, the log and the status item say so. */
const CRASHES_BEFORE_MESSAGE = 3;

export interface Handlers {
  readonly status: (params: StatusParams) => void;
  readonly showDiff: (params: ShowDiffParams) => void;
  readonly changed: () => void;
  readonly review: (place: Place) => void;
  readonly commands: Commands;
}

export class Server implements vscode.Disposable {
  readonly log = new ServerLog();
  readonly passedOver: PassedOver[] = [];
  chosen = "none";
  /** The command that runs the server, as far as one was found. */
  candidate: Candidate | undefined;
  lastTraceback = "";
  private connection: Connection | undefined;
  private settings: ServerSettings = {};
  private readonly backoff = new Backoff();
  private timer: NodeJS.Timeout | undefined;
  /** Starts and stops run one after the other. */
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly secrets: vscode.SecretStorage,
    private readonly output: vscode.LogOutputChannel,
    private readonly item: StatusItem,
    private readonly handlers: Handlers,
  ) {}

  get crashes(): number {
    return this.backoff.count;
  }

  get isRunning(): boolean {
    return this.connection !== undefined;
  }

  /** Settings as the server was told them. */
  get told(): ServerSettings {
    return this.settings;
  }

  dispose(): void {
    void this.stop();
  }

  stop(): Promise<void> {
    clearTimeout(this.timer);
    return this.enqueue(() => this.disconnect());
  }

  /** (Re)starts at once, whatever the back-off says. */
  restart(reason: string): Promise<void> {
    clearTimeout(this.timer);
    this.backoff.reset();
    this.output.info(`Starting the server: ${reason}.`);
    return this.enqueue(() => this.connect());
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step).catch((error: unknown) => {
      this.output.error(`Starting or stopping the server failed: ${String(error)}`);
      this.item.failed(t("Starting or stopping the server failed: {0}", String(error)));
    });
    return this.queue;
  }

  private async disconnect(): Promise<void> {
    const connection = this.connection;
    this.connection = undefined;
    await vscode.commands.executeCommand("setContext", "evokernel.ready", false);
    await connection?.stop();
  }

  private async connect(): Promise<void> {
    await this.disconnect();
    this.item.starting();
    this.passedOver.length = 0;
    const interpreter = await selectedInterpreter(this.output);
    let remaining = candidates(surroundings(interpreter));
    let launched = false;
    for (;;) {
      const choice = await choose(remaining, attempt);
      for (const passed of choice.passedOver) this.passOver(passed);
      if (choice.chosen === undefined) break;
      launched = true;
      if (await this.launch(choice.chosen, choice.version, interpreter)) return;
      remaining = remaining.slice(remaining.indexOf(choice.chosen) + 1);
    }
    if (launched) this.crashed(t("The server ended at its start"));
    else this.nothingFound();
  }

  private passOver(passed: PassedOver): void {
    this.passedOver.push(passed);
    this.output.info(`Passed over ${passed.candidate.how}: ${passed.reason}.`);
  }

  /** False when this command does not bring up a server; the next one is tried then. */
  private async launch(candidate: Candidate, version: string, interpreter: string | undefined): Promise<boolean> {
    this.candidate = candidate;
    this.chosen = describe(candidate, version);
    this.output.info(`Server command from ${this.chosen}.`);
    const connection = await this.prepare(candidate, interpreter);
    try {
      await connection.start();
    } catch (error) {
      this.lastTraceback = this.log.lastTraceback();
      this.passOver({ candidate, reason: error instanceof Error ? error.message : String(error) });
      return false;
    }
    this.connection = connection;
    this.backoff.started(Date.now());
    this.item.running(this.chosen, this.notes());
    this.activeEditorChanged(vscode.window.activeTextEditor);
    await vscode.commands.executeCommand("setContext", "evokernel.ready", true);
    return true;
  }

  private async prepare(candidate: Candidate, interpreter: string | undefined): Promise<Connection> {
    const trusted = vscode.workspace.isTrusted;
    this.settings = await this.readSettings(interpreter);
    const connection: Connection = new Connection({
      candidate,
      environment: trusted ? await secretEnvironment(this.secrets) : {},
      initializationOptions: { settings: this.settings, trusted },
      middleware: middleware(() => this.settings, this.handlers.commands),
      output: this.output,
      log: this.log,
      lost: () => {
        if (this.connection === connection) this.crashed(t("The server ended unexpectedly"));
      },
    });
    // Handlers are there before the server can speak.
    connection.client.onNotification(StatusNotification, this.handlers.status);
    connection.client.onNotification(ShowDiffNotification, this.handlers.showDiff);
    connection.client.onNotification(ChangedNotification, this.handlers.changed);
    connection.client.onNotification(ReviewNotification, this.handlers.review);
    return connection;
  }

  /** The Python extension's interpreter runs the models, unless it has no torch. */
  private async readSettings(interpreter: string | undefined): Promise<ServerSettings> {
    const configuration = vscode.workspace.getConfiguration("evokernel");
    const torch = interpreter !== undefined && vscode.workspace.isTrusted && (await hasTorch(interpreter));
    return serverSettings((key) => configuration.get(key), torch ? interpreter : undefined);
  }

  /** Only what a person set and did not get is worth a line in the tooltip. */
  private notes(): string[] {
    return this.passedOver
      .filter(({ candidate }) => candidate.how.startsWith("setting"))
      .map(({ candidate, reason }) => `${candidate.how} (${reason})`);
  }

  private crashed(how: string): void {
    this.connection = undefined;
    void vscode.commands.executeCommand("setContext", "evokernel.ready", false);
    this.lastTraceback = this.log.lastTraceback();
    const wait = this.backoff.crashed(Date.now());
    const said = t("{0}; it is started again in {1} s.", how, Math.round(wait / 1000));
    this.output.error(said);
    this.item.failed(said);
    this.timer = setTimeout(() => void this.enqueue(() => this.connect()), wait);
    if (this.backoff.count === CRASHES_BEFORE_MESSAGE) {
      const reason = this.log.reason();
      const crashes = t("EvoKernel's server has crashed {0} times in a row.", this.backoff.count);
      const told = reason === "" ? crashes : t("{0} Its last words: {1}", crashes, reason);
      void this.tell(told, t("Restart Now"));
    }
  }

  private nothingFound(): void {
    this.candidate = undefined;
    this.chosen = "none";
    const said = t("No EvoKernel server was found. {0}", install());
    this.output.error(said);
    this.item.failed(said);
    void this.tell(said, t("Try Again"));
  }

  private async tell(message: string, again: string): Promise<void> {
    const [showLog, copyDebugInfo] = [t("Show Log"), t("Copy Debug Info")];
    const answer = await vscode.window.showErrorMessage(message, again, showLog, copyDebugInfo);
    if (answer === again) await this.restart("asked for");
    if (answer === showLog) this.output.show();
    if (answer === copyDebugInfo) await vscode.commands.executeCommand("evokernel.copyDebugInfo");
  }

  /** The status is that of the file in front; an output channel or a search box in front changes nothing. */
  activeEditorChanged(editor: vscode.TextEditor | undefined): void {
    if (editor === undefined || !["file", "untitled"].includes(editor.document.uri.scheme)) return;
    const uri = this.connection?.client.code2ProtocolConverter.asUri(editor.document.uri);
    if (uri !== undefined) void this.connection?.client.sendNotification(ActiveDocumentNotification, { uri });
  }

  /** Another interpreter was selected: it may run the server, or only the models. */
  interpreterChanged(): Promise<void> {
    return this.restart("another interpreter was selected");
  }

  async settingsChanged(event: vscode.ConfigurationChangeEvent): Promise<void> {
    if (!event.affectsConfiguration("evokernel")) return;
    if (event.affectsConfiguration("evokernel.serverCommand")) {
      await this.restart("evokernel.serverCommand changed");
      return;
    }
    const before = this.settings;
    this.settings = await this.readSettings(await selectedInterpreter(this.output));
    if (needsRestart(before, this.settings)) {
      await this.restart("a setting was cleared");
      return;
    }
    await this.connection?.client.sendNotification("workspace/didChangeConfiguration", {
      settings: { evokernel: this.settings },
    });
  }

  /** Why nothing can be asked now: a server that was found comes back by itself. */
  private away(): string {
    if (this.candidate === undefined) return t("The EvoKernel server is not running.");
    return t("The EvoKernel server is starting: nothing was changed; try again in a moment.");
  }

  /** Runs a command of the server; its failure is thrown as the server words it. */
  async execute(command: string, ...args: unknown[]): Promise<unknown> {
    if (this.connection === undefined) throw new Error(this.away());
    return this.connection.client.sendRequest("workspace/executeCommand", { command, arguments: args });
  }
}

function surroundings(interpreter: string | undefined): Parameters<typeof candidates>[0] {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return {
    configured: vscode.workspace.getConfiguration("evokernel").get<string[]>("serverCommand", []),
    selectedInterpreter: interpreter,
    folders: folders.filter(({ uri }) => uri.scheme === "file").map(({ uri }) => uri.fsPath),
    trusted: vscode.workspace.isTrusted,
    platform: process.platform,
  };
}

async function hasTorch(interpreter: string): Promise<boolean> {
  const question = "import importlib.util as u; print(u.find_spec('torch').name)";
  return (await attempt({ kind: "version", command: interpreter, args: ["-P", "-c", question] })).ok;
}
