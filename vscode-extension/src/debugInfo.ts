/** What a report of a fault needs, as text for the clipboard: no secrets, no text of a file. */
import * as os from "node:os";

export interface DebugFacts {
  readonly extension: string;
  readonly editor: string;
  readonly remote: string;
  readonly trusted: boolean;
  readonly server: string;
  readonly passedOver: readonly string[];
  readonly crashes: number;
  readonly status: string;
  readonly secrets: readonly string[];
  readonly settings: Readonly<Record<string, unknown>>;
  readonly traceback: string;
  readonly log: string;
}

export function debugInfo(facts: DebugFacts, home: string = os.homedir()): string {
  const lines = [
    `EvoKernel extension ${facts.extension}`,
    `Editor: ${facts.editor}${facts.remote === "" ? "" : ` (remote: ${facts.remote})`}`,
    `System: ${os.platform()} ${os.release()} ${os.arch()}, Node ${process.versions.node}`,
    `Workspace trusted: ${facts.trusted ? "yes" : "no"}`,
    `Server: ${facts.server}`,
    ...facts.passedOver.map((line) => `Passed over: ${line}`),
    `Crashes in a row: ${facts.crashes}`,
    `Status: ${facts.status}`,
    ...facts.secrets,
    `Settings: ${JSON.stringify(facts.settings)}`,
    section("Last traceback", facts.traceback),
    section("Server log", facts.log),
  ];
  const text = lines.filter((line) => line !== "").join("\n");
  // A person's name is often in the path of the home folder.
  return home.length > 1 ? text.replaceAll(home, "~") : text;
}

function section(title: string, body: string): string {
  return body === "" ? "" : `\n${title}:\n${body}`;
}
