/** What the server knows beyond one file: jobs, kernels, and offers that wait. As far as the tree shows it. */
import type { Place } from "./review";

export interface Job {
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
  readonly reason: string;
}

export interface CalledKernel {
  /** The Python file that calls it. */
  readonly uri: string;
  readonly name: string;
  /** 0-based. */
  readonly line: number;
  readonly stale: boolean;
}

/** `ready`: nothing is installed yet; else a faster kernel for an installed one. */
export interface Offer extends Place {
  readonly regionId: string;
  readonly name: string;
  readonly words: string;
  readonly ready: boolean;
}

export interface Dashboard {
  readonly jobs: readonly Job[];
  readonly kernels: readonly CalledKernel[];
  readonly offers: readonly Offer[];
}

export const NOTHING: Dashboard = { jobs: [], kernels: [], offers: [] };

type Data = Readonly<Record<string, unknown>>;

export function readDashboard(answer: unknown): Dashboard {
  const data = (answer as { readonly dashboard?: Data | null } | null | undefined)?.dashboard;
  if (typeof data !== "object" || data === null) return NOTHING;
  return {
    jobs: rows(data["jobs"]).map((job) => ({
      id: text(job["id"]),
      file: text(job["file"]),
      uri: text(job["uri"]),
      line: number(job["line"]),
      kind: text(job["kind"]),
      state: text(job["state"]),
      stage: text(job["stage"]),
      attempt: number(job["attempt"]),
      budget: number(job["budget"]),
      reason: text(job["reason"]),
    })),
    kernels: rows(data["kernels"]).map((kernel) => ({
      uri: text(kernel["uri"]),
      name: text(kernel["name"]),
      line: number(kernel["line"]),
      stale: kernel["stale"] === true,
    })),
    offers: rows(data["offers"]).map((offer) => ({
      uri: text(offer["uri"]),
      regionId: text(offer["regionId"]),
      name: text(offer["name"]),
      words: text(offer["words"]),
      ready: offer["ready"] === true,
    })),
  };
}

function rows(value: unknown): Data[] {
  return Array.isArray(value) ? value.filter((row): row is Data => typeof row === "object" && row !== null) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
