/** How each state looks in the status bar. Nothing here knows VS Code, so it is tested as it stands. */
import type { Mode } from "./protocol";

export interface Look {
  readonly icon: string;
  readonly words: string;
  /** Red is for failures of EvoKernel and of the environment, never for what a file lacks. */
  readonly red: boolean;
}

export const LOOKS: Readonly<Record<Mode | "starting", Look>> = {
  starting: { icon: "$(sync~spin)", words: "", red: false },
  analysing: { icon: "$(sync~spin)", words: "", red: false },
  needs_inputs: { icon: "$(question)", words: "needs inputs", red: false },
  ready: { icon: "$(zap)", words: "", red: false },
  nothing_to_gain: { icon: "$(check)", words: "", red: false },
  failed: { icon: "$(circle-slash)", words: "", red: false },
  error: { icon: "$(error)", words: "", red: true },
  busy: { icon: "$(sync~spin)", words: "", red: false },
  queued: { icon: "$(clock)", words: "", red: false },
  offline: { icon: "$(debug-disconnect)", words: "", red: false },
};

/** The item's text; a mode that a newer server may send looks like `ready`. */
export function textOf(mode: string): string {
  const { icon, words } = lookOf(mode);
  return words === "" ? `${icon} EvoKernel` : `${icon} EvoKernel: ${words}`;
}

export function lookOf(mode: string): Look {
  return mode in LOOKS ? LOOKS[mode as Mode | "starting"] : LOOKS.ready;
}
