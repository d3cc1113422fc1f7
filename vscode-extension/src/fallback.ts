/**
 * Which command starts the server: candidates in order of preference, the first that answers wins.
 * Nothing here knows VS Code, so the order is tested as it stands.
 */
import * as path from "node:path";

export interface Surroundings {
  /** The setting `evokernel.serverCommand`; empty when it is not set. */
  readonly configured: readonly string[];
  /** The interpreter selected in the Python extension. */
  readonly selectedInterpreter: string | undefined;
  /** Workspace folders as paths on this machine. */
  readonly folders: readonly string[];
  /** In an untrusted workspace nothing that the workspace could have brought is run. */
  readonly trusted: boolean;
  readonly platform: NodeJS.Platform;
}

/** How a candidate is tried out: a file to find, or a command that has to print a version. */
export type Trial =
  | { readonly kind: "executable"; readonly command: string }
  | { readonly kind: "version"; readonly command: string; readonly args: readonly string[] };

export interface Candidate {
  /** Where the command comes from, in words for the status item. */
  readonly how: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly trial: Trial;
}

export type Outcome = { readonly ok: true; readonly version: string } | { readonly ok: false; readonly reason: string };

export interface PassedOver {
  readonly candidate: Candidate;
  readonly reason: string;
}

export interface Choice {
  readonly chosen: Candidate | undefined;
  readonly version: string;
  readonly passedOver: readonly PassedOver[];
}

/** `-P`: a folder of that name in the working directory is not the package. */
const PRINT_VERSION = ["-P", "-c", "import evokernel_core; print(evokernel_core.__version__)"];
const RUN_SERVER = ["-P", "-c", "from evokernel_core.cli.main import main; main()", "lsp"];

export function candidates(around: Surroundings): Candidate[] {
  return [
    ...fromSetting(around.configured),
    ...(around.trusted ? fromInterpreter(around.selectedInterpreter) : []),
    ...(around.trusted ? around.folders.flatMap((folder) => fromFolder(folder, around.platform)) : []),
    executable("evokernel on PATH", "evokernel"),
    interpreter("python3 on PATH", around.platform === "win32" ? "python" : "python3"),
  ];
}

function fromSetting(configured: readonly string[]): Candidate[] {
  const [command, ...args] = configured;
  if (command === undefined || command === "") return [];
  return [{ how: "setting evokernel.serverCommand", command, args, trial: { kind: "executable", command } }];
}

function fromInterpreter(selected: string | undefined): Candidate[] {
  return selected === undefined || selected === "" ? [] : [interpreter("interpreter of the Python extension", selected)];
}

function fromFolder(folder: string, platform: NodeJS.Platform): Candidate[] {
  const paths = platform === "win32" ? path.win32 : path.posix;
  const inside = platform === "win32" ? ["Scripts", "evokernel.exe"] : ["bin", "evokernel"];
  return [".venv", "venv"].map((name) => executable(`${name} of the workspace`, paths.join(folder, name, ...inside)));
}

function executable(how: string, command: string): Candidate {
  return { how, command, args: ["lsp"], trial: { kind: "version", command, args: ["--version"] } };
}

function interpreter(how: string, command: string): Candidate {
  return { how, command, args: RUN_SERVER, trial: { kind: "version", command, args: PRINT_VERSION } };
}

/** The first candidate whose trial succeeds; the reasons of those before it are kept for the log. */
export async function choose(
  options: readonly Candidate[],
  attempt: (trial: Trial) => Promise<Outcome>,
): Promise<Choice> {
  const passedOver: PassedOver[] = [];
  for (const candidate of options) {
    const outcome = await attempt(candidate.trial);
    if (outcome.ok) return { chosen: candidate, version: outcome.version, passedOver };
    passedOver.push({ candidate, reason: outcome.reason });
  }
  return { chosen: undefined, version: "", passedOver };
}

/** One line for a person: what was chosen and from where. */
export function describe(candidate: Candidate, version: string): string {
  return `${candidate.how}: ${candidate.command}${version === "" ? "" : ` (${version})`}`;
}
