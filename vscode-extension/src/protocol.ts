/** What the server says beyond the Language Server Protocol. */
import { NotificationType } from "vscode-languageclient/node";

export type Mode = "ready" | "busy" | "queued" | "offline" | "error";

export interface StatusParams {
  readonly mode: Mode;
  readonly text: string;
  readonly verifier: string;
  readonly interpreter: string;
  /** Faster kernels that wait for a decision. */
  readonly offers?: number;
}

export interface ShowDiffParams {
  readonly uri: string;
  readonly original: string;
  readonly proposed: string;
  readonly title: string;
}

export const StatusNotification = new NotificationType<StatusParams>("evokernel/status");
export const ShowDiffNotification = new NotificationType<ShowDiffParams>("evokernel/showDiff");
