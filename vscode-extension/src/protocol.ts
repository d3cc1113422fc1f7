/** What the server says beyond the Language Server Protocol. */
import { NotificationType } from "vscode-languageclient/node";
import type { Place } from "./review";

/** The first seven are states of the active document. `error` is a failure of EvoKernel or of the environment,
 * `failed` one that lies in the file. */
export type Mode =
  | "analysing"
  | "needs_inputs"
  | "ready"
  | "ready_to_review"
  | "nothing_to_gain"
  | "failed"
  | "error"
  | "busy"
  | "queued"
  | "offline";

export interface StatusParams {
  readonly mode: Mode;
  readonly text: string;
  readonly verifier: string;
  readonly interpreter: string;
  /** Faster kernels that wait for a decision. */
  readonly offers?: number;
  /** The device that kernels are written for, and what they are called: NPU or Triton. */
  readonly chip?: string;
  readonly kind?: string;
  /** What an analysis does and how far it is, in some words of the server; empty at any other time. */
  readonly progress?: string;
  /** The document that mode and text are about; empty where they are about the server. */
  readonly uri?: string;
}

export interface ShowDiffParams {
  readonly uri: string;
  readonly original: string;
  readonly proposed: string;
  readonly title: string;
}

export const StatusNotification = new NotificationType<StatusParams>("evokernel/status");
/** The protocol does not say which document is in front of a person; an empty `uri`: none. */
export const ActiveDocumentNotification = new NotificationType<{ readonly uri: string }>("evokernel/activeDocument");
/** Jobs, kernels or offers changed: what shows them asks again. */
export const ChangedNotification = new NotificationType<object>("evokernel/changed");
/** A person chose to review a kernel in a message of the server's. */
export const ReviewNotification = new NotificationType<Place>("evokernel/review");
export const ShowDiffNotification = new NotificationType<ShowDiffParams>("evokernel/showDiff");
