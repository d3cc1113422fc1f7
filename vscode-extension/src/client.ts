/** One connection to one server process. */
import { spawn, type ChildProcess } from "node:child_process";
import * as os from "node:os";
import * as readline from "node:readline";
import type * as vscode from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  RevealOutputChannelOn,
  type LanguageClientOptions,
  type Middleware,
  type StaticFeature,
} from "vscode-languageclient/node";
import type { Candidate } from "./fallback";
import type { ServerLog } from "./serverlog";

const INITIALIZE_TIMEOUT_MS = 60_000;
/** A server that has been told to stop gets this long before it is killed. */
const STOP_TIMEOUT_MS = 3_000;

/** Failures are told by the status item; the library's own messages go to the log alone. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Tells the server that `evokernel/showDiff` and `evokernel/status` are understood. */
const ownCapability: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), evokernel: true };
  },
  initialize() {
    // Nothing depends on the server's capabilities.
  },
  getState: () => ({ kind: "static" }),
  clear() {
    // Nothing is registered.
  },
};

export interface ConnectionOptions {
  readonly candidate: Candidate;
  readonly environment: Readonly<Record<string, string>>;
  readonly initializationOptions: unknown;
  readonly middleware: Middleware;
  readonly output: vscode.LogOutputChannel;
  readonly log: ServerLog;
  /** Called once when a running server goes away by itself. */
  readonly lost: () => void;
}

export class Connection {
  readonly client: LanguageClient;
  private child: ChildProcess | undefined;
  private state: "starting" | "running" | "stopping" = "starting";
  /** Rejects when the process ends. */
  private readonly died: Promise<never>;
  private reportDeath: (reason: Error) => void = () => undefined;

  constructor(private readonly options: ConnectionOptions) {
    this.client = new QuietClient(
      "evokernel",
      "EvoKernel",
      () => Promise.resolve(this.launch()),
      this.clientOptions(),
    );
    this.client.registerFeature(ownCapability);
    this.died = new Promise((_, reject) => {
      this.reportDeath = reject;
    });
    // Once the server is up, its end is told by the connection.
    this.died.catch(() => undefined);
  }

  private clientOptions(): LanguageClientOptions {
    const { output, log } = this.options;
    return {
      documentSelector: [{ language: "python", scheme: "file" }],
      outputChannel: output,
      traceOutputChannel: output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: this.options.initializationOptions,
      initializationFailedHandler: () => false,
      middleware: this.options.middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          this.closed();
          return { action: CloseAction.DoNotRestart, handled: true, message: "The connection to the server is closed." };
        },
      },
      stdioOptions: {
        stdout: () => undefined,
        stderr: (stream) => {
          readline.createInterface({ input: stream, crlfDelay: Infinity }).on("line", (line) => {
            log.add(line);
            output.info(line);
          });
        },
      },
    };
  }

  private launch(): ChildProcess {
    const { candidate, environment } = this.options;
    const child = spawn(candidate.command, [...candidate.args, "--stdio"], {
      cwd: os.homedir(),
      env: { ...process.env, ...environment },
      stdio: "pipe",
      windowsHide: true,
    });
    child.once("error", (error) => {
      this.reportDeath(new Error(`The server could not be started: ${error.message}`));
    });
    child.once("exit", (code, signal) => {
      this.reportDeath(new Error(`The server ended at its start (${signal ?? `exit status ${code ?? "unknown"}`})`));
    });
    this.child = child;
    return child;
  }

  /** Resolves when the server is initialised; rejects with a reason in words otherwise. */
  async start(): Promise<void> {
    let giveUp: NodeJS.Timeout | undefined;
    const failed = new Promise<never>((_, reject) => {
      giveUp = setTimeout(() => {
        reject(new Error(`The server gave no answer within ${INITIALIZE_TIMEOUT_MS / 1000} s`));
      }, INITIALIZE_TIMEOUT_MS);
    });
    try {
      // The library's promise may also resolve for a server that has ended meanwhile.
      const started = this.client.start().then(() => (this.client.isRunning() ? undefined : this.died));
      await Promise.race([started, failed, this.died]);
      this.state = "running";
    } catch (error) {
      await this.stop();
      throw error;
    } finally {
      clearTimeout(giveUp);
    }
  }

  private closed(): void {
    if (this.state !== "running") return;
    this.state = "stopping";
    this.kill();
    this.options.lost();
  }

  async stop(): Promise<void> {
    this.state = "stopping";
    try {
      if (this.client.isRunning()) await this.client.stop(STOP_TIMEOUT_MS);
    } catch (error) {
      this.options.output.warn(`The server did not stop by itself: ${String(error)}`);
    }
    this.kill();
  }

  /** A server that has already ended is left alone; one that lingers is ended. */
  private kill(): void {
    const child = this.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    child.once("exit", () => {
      clearTimeout(timer);
    });
  }
}
