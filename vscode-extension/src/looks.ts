/** How each state looks in the status bar. Nothing here knows VS Code, so it is tested as it stands. */
import { t } from "./l10n";
import type { Mode } from "./protocol";

export interface Look {
  readonly icon: string;
  readonly words: () => string;
  /** Red is for failures of EvoKernel and of the environment, never for what a file lacks. */
  readonly red: boolean;
}

const NONE = (): string => "";

export const LOOKS: Readonly<Record<Mode | "starting", Look>> = {
  starting: { icon: "$(sync~spin)", words: NONE, red: false },
  analysing: { icon: "$(sync~spin)", words: NONE, red: false },
  needs_inputs: { icon: "$(question)", words: () => t("needs inputs"), red: false },
  ready_to_review: { icon: "$(diff)", words: () => t("kernel ready"), red: false },
  ready: { icon: "$(zap)", words: NONE, red: false },
  nothing_to_gain: { icon: "$(check)", words: NONE, red: false },
  failed: { icon: "$(circle-slash)", words: NONE, red: false },
  error: { icon: "$(error)", words: NONE, red: true },
  busy: { icon: "$(sync~spin)", words: NONE, red: false },
  queued: { icon: "$(clock)", words: () => t("waiting"), red: false },
  offline: { icon: "$(debug-disconnect)", words: NONE, red: false },
};

/** The item's text, with how far an analysis is; a mode that a newer server may send looks like `ready`. */
export function textOf(mode: string, progress = ""): string {
  const look = lookOf(mode);
  const words = progress === "" ? look.words() : progress;
  return words === "" ? `${look.icon} EvoKernel` : `${look.icon} EvoKernel: ${words}`;
}

export function lookOf(mode: string): Look {
  return mode in LOOKS ? LOOKS[mode as Mode | "starting"] : LOOKS.ready;
}
