/** What the server answers to `evokernel.dashboard`, read as what it should be. */
import type { Figure } from "./kernels";
import { figure, list, number, objects, record, text, type Data } from "./read";

export interface DashboardJob {
  readonly id: string;
  readonly file: string;
  readonly uri: string;
  /** 0-based. */
  readonly line: number;
  readonly kind: string;
  readonly state: string;
  readonly stage: string;
  readonly attempt: number;
  readonly budget: number;
  readonly bestUs: number | undefined;
  readonly bestSource: string;
  readonly reason: string;
}

export interface Verified {
  readonly attempt: number;
  readonly us: number;
}

export interface DashboardKernel {
  readonly uri: string;
  readonly name: string;
  /** 0-based. */
  readonly line: number;
  /** Undefined where the package is missing. */
  readonly us: number | undefined;
  readonly source: string;
  readonly chip: string;
  readonly baselineUs: number | undefined;
  readonly baselineSource: string;
  readonly boundUs: number | undefined;
  readonly bottleneck: string;
  readonly verifier: string;
  readonly history: readonly Verified[];
  readonly stale: boolean;
  /** Why it is out of date, in a sentence of the server. */
  readonly why: string;
}

export interface DashboardOffer {
  readonly uri: string;
  readonly regionId: string;
  readonly name: string;
  /** What is computed: "rms_norm", "Block.forward". */
  readonly title: string;
  readonly words: string;
  /** What it replaces: the accepted kernel, or eager PyTorch where it is ready. */
  readonly was: Figure;
  readonly newUs: number;
  /** "modelled" or "measured". */
  readonly source: string;
  readonly ready: boolean;
}

export interface Decision {
  /** Seconds since the epoch. */
  readonly at: number;
  readonly kind: string;
  readonly name: string;
  readonly detail: string;
}

export interface DashboardState {
  readonly jobs: readonly DashboardJob[];
  readonly kernels: readonly DashboardKernel[];
  readonly offers: readonly DashboardOffer[];
  readonly memory: {
    readonly path: string;
    readonly items: number;
    readonly bytes: number;
    readonly decisions: readonly Decision[];
    readonly learned: readonly string[];
  };
  readonly verifier: { readonly name: string; readonly where: string; readonly state: string; readonly queued: number };
  readonly status: { readonly mode: string; readonly text: string };
}

/** Undefined for what is no dashboard: an answer of a server that knows none, or a refusal. */
export function readState(answer: unknown): DashboardState | undefined {
  const data = record(answer)["dashboard"];
  if (typeof data !== "object" || data === null) return undefined;
  const { jobs, kernels, offers, memory, verifier, status } = record(data);
  const [kept, verifies, now] = [record(memory), record(verifier), record(status)];
  return {
    jobs: objects(jobs).map(readJob),
    kernels: objects(kernels).map(readKernel),
    offers: objects(offers).map((offer) => ({
      ...readPlace(offer),
      regionId: text(offer["regionId"]),
      title: text(offer["title"]) || text(offer["name"]),
      words: text(offer["words"]),
      was: { us: number(offer["wasUs"]), source: text(offer["wasSource"]) },
      newUs: number(offer["newUs"]),
      source: text(offer["source"]),
      ready: offer["ready"] === true,
    })),
    memory: {
      path: text(kept["path"]),
      items: number(kept["items"]),
      bytes: number(kept["bytes"]),
      decisions: objects(kept["decisions"]).map((item) => ({
        at: number(item["at"]),
        kind: text(item["kind"]),
        name: text(item["name"]),
        detail: text(item["detail"]),
      })),
      learned: list(kept["learned"]).map(text),
    },
    verifier: {
      name: text(verifies["name"]),
      where: text(verifies["where"]),
      state: text(verifies["state"]),
      queued: number(verifies["queued"]),
    },
    status: { mode: text(now["mode"]), text: text(now["text"]) },
  };
}

function readJob(job: Data): DashboardJob {
  return {
    id: text(job["id"]),
    file: text(job["file"]),
    uri: text(job["uri"]),
    line: number(job["line"]),
    kind: text(job["kind"]),
    state: text(job["state"]),
    stage: text(job["stage"]),
    attempt: number(job["attempt"]),
    budget: number(job["budget"]),
    bestUs: figure(job["bestUs"]),
    bestSource: text(job["bestSource"]),
    reason: text(job["reason"]),
  };
}

function readKernel(kernel: Data): DashboardKernel {
  return {
    ...readPlace(kernel),
    line: number(kernel["line"]),
    us: figure(kernel["us"]),
    source: text(kernel["source"]),
    chip: text(kernel["chip"]),
    baselineUs: figure(kernel["baselineUs"]),
    baselineSource: text(kernel["baselineSource"]) || "modelled",
    boundUs: figure(kernel["boundUs"]),
    bottleneck: text(kernel["bottleneck"]),
    verifier: text(kernel["verifier"]),
    history: objects(kernel["history"]).map((item) => ({ attempt: number(item["attempt"]), us: number(item["us"]) })),
    stale: kernel["stale"] === true,
    why: text(kernel["why"]),
  };
}

function readPlace(data: Data): { readonly uri: string; readonly name: string } {
  return { uri: text(data["uri"]), name: text(data["name"]) };
}
