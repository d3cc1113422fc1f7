/** What the tree view shows: jobs, kernels that wait for a decision, and accepted kernels. Knows no VS Code. */
import type { DashboardJob, DashboardKernel, DashboardOffer, DashboardState } from "./dashboardState";
import { evidence, gain, gainOf, latencyLine, latencyWords, type Kernel } from "./kernels";
import { jobState } from "./jobState";
import { t } from "./l10n";

/** A package on the disk; `folder` is its address. */
export interface Package {
  readonly kernel: Kernel;
  readonly folder: string;
}

export interface GroupNode {
  readonly kind: "group";
  readonly group: "offers" | "jobs" | "kernels";
  readonly children: readonly (OfferNode | JobNode | KernelNode)[];
}

export interface OfferNode {
  readonly kind: "offer";
  readonly offer: DashboardOffer;
}

export interface JobNode {
  readonly kind: "job";
  readonly job: DashboardJob;
}

export interface KernelNode {
  readonly kind: "kernel";
  readonly kernel: Kernel;
  readonly folder: string;
  /** Where it is called; undefined for a package that no open file calls. */
  readonly call: DashboardKernel | undefined;
}

/** Groups that hold something, those that ask for a decision first. */
export function groups(dashboard: DashboardState | undefined, packages: readonly Package[]): GroupNode[] {
  const { jobs, kernels: calls, offers } = dashboard ?? { jobs: [], kernels: [], offers: [] };
  const kernels = packages.map((item): KernelNode => ({ kind: "kernel", ...item, call: callOf(item, calls) }));
  kernels.sort((left, right) => left.kernel.name.localeCompare(right.kernel.name));
  const all: GroupNode[] = [
    { kind: "group", group: "offers", children: offers.map((offer) => ({ kind: "offer", offer })) },
    { kind: "group", group: "jobs", children: jobs.filter(isAlive).map((job) => ({ kind: "job", job })) },
    { kind: "group", group: "kernels", children: kernels },
  ];
  return all.filter(({ children }) => children.length > 0);
}

/** A package lies in `evokernel_kernels/` beside the file that calls it. */
function callOf({ kernel, folder }: Package, calls: readonly DashboardKernel[]): DashboardKernel | undefined {
  const place = unescaped(folder);
  return calls.find(({ uri, name }) => {
    const file = unescaped(uri);
    return name === kernel.name && `${file.slice(0, file.lastIndexOf("/"))}/evokernel_kernels/${name}` === place;
  });
}

/** The editor and the server escape different signs of an address. */
function unescaped(uri: string): string {
  try {
    return decodeURIComponent(uri);
  } catch {
    return uri;
  }
}

/** Jobs that have ended are history. */
function isAlive({ state }: DashboardJob): boolean {
  return !["done", "failed", "cancelled"].includes(state);
}

/** How a row looks. `context` is what menus look at. */
export interface Row {
  readonly label: string;
  readonly description: string;
  readonly icon: string;
  readonly context: string;
  readonly tooltip: readonly string[];
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(" · ");
}

export function groupRow({ group, children }: GroupNode): Row {
  const labels = { offers: t("Waiting for your review"), jobs: t("Being worked on"), kernels: t("Kernels") };
  const label = labels[group];
  return { label, description: String(children.length), icon: "", context: group, tooltip: [] };
}

export function offerRow({ offer }: OfferNode): Row {
  const now = { us: offer.newUs, source: offer.source };
  return {
    label: offer.title,
    description: joined(latencyWords(now), gain(offer.was, now, offer.ready)),
    icon: offer.ready ? "diff-added" : "diff-modified",
    context: offer.ready ? "offer.ready" : "offer.faster",
    tooltip: [offer.name, offer.ready ? t("ready") : t("faster"), offer.words],
  };
}

export function jobRow({ job }: JobNode): Row {
  const attempts = job.attempt > 0 ? ` ${job.attempt}/${job.budget}` : "";
  const running = job.state === "running";
  return {
    label: job.file.split(/[\\/]/).at(-1) ?? job.file,
    description: `${job.stage === "" ? jobState(job.state) : job.stage}${attempts}`,
    icon: running ? "sync~spin" : "clock",
    context: running ? "job.running" : "job.waiting",
    tooltip: [t("line {0}", job.line + 1), job.kind, job.reason].filter((line) => line !== ""),
  };
}

export function kernelRow({ kernel, call }: KernelNode): Row {
  const stale = call?.stale === true;
  return {
    label: kernel.title,
    description: joined(latencyLine(kernel), gainOf(kernel), stale ? t("out of date") : ""),
    icon: stale ? "warning" : "zap",
    context: call === undefined ? "kernel" : "kernel.called",
    tooltip: [kernel.name, ...evidence(kernel), call?.why ?? ""].filter((line) => line !== ""),
  };
}
