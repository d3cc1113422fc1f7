/** A kernel package's manifest (`kernel.json`), as far as the tree view shows it. */
import { t } from "./l10n";

export interface Gate {
  readonly name: string;
  readonly status: string;
}

/** A latency in microseconds; `source` is `modelled` or `measured`. */
export interface Figure {
  readonly us: number;
  readonly source: string;
}

export interface Kernel {
  readonly name: string;
  /** What is computed, else the package's name. */
  readonly title: string;
  readonly latency: Latency | undefined;
  readonly verifier: string;
  readonly gates: readonly Gate[];
  /** The names of its files. */
  readonly sources: readonly string[];
}

export interface Latency {
  readonly us: number;
  readonly baselineUs: number;
  readonly baselineSource: string;
  readonly rooflineUs: number;
  /** `modelled` or `measured`; a figure is never shown without it. */
  readonly source: string;
  readonly chip: string;
}

/** The files of kernels in AscendC: those of packages whose manifest is of before it named them. */
const EARLIER_SOURCES: readonly string[] = ["tiling.h", "op_kernel.cpp"];
const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

/** A manifest is some kilobytes, that of the largest program some hundred. */
const LARGEST_MANIFEST = 4 * 1024 * 1024;
const REGULAR_FILE = 1; // vscode.FileType.File

/**
 * Whether a file is read as a manifest: a link may lead to any file or device, and a pipe never ends. `type` and
 * `size` are those of `vscode.FileStat`.
 */
export function isReadable({ type, size }: { readonly type: number; readonly size: number }): boolean {
  return type === REGULAR_FILE && size <= LARGEST_MANIFEST;
}

/** A package is named as Python imports it; a folder with another name is none, whatever it looks like. */
export function isPackageName(name: string): boolean {
  return /^[A-Za-z_]\w{0,255}$/.test(name);
}

/** Undefined for a text that is no manifest, and in a folder that is no package. */
export function readManifest(name: string, text: string): Kernel | undefined {
  const manifest = record(parse(text));
  const verdict = record(manifest?.["verdict"]);
  if (verdict === undefined || !isPackageName(name)) return undefined;
  const gates = Array.isArray(verdict["gates"]) ? verdict["gates"] : [];
  return {
    name,
    title: titleOf(manifest?.["title"]) ?? name,
    latency: readLatency(verdict["latency"]),
    verifier: words(verdict["verifier"]),
    gates: gates.map((gate) => ({ name: words(record(gate)?.["gate"]), status: words(record(gate)?.["status"]) })),
    sources: readSources(manifest?.["sources"]),
  };
}

/** Undefined for what is no name with dots: whoever wrote the manifest may be a stranger. */
function titleOf(given: unknown): string | undefined {
  const title = words(given);
  return title.split(".").every(isPackageName) ? title : undefined;
}

/** Names that stay within the package's folder: whoever wrote the manifest may be a stranger. */
function readSources(names: unknown): readonly string[] {
  if (names === undefined) return EARLIER_SOURCES;
  return Array.isArray(names) ? names.map(words).filter((name) => FILE_NAME.test(name)) : [];
}

function readLatency(data: unknown): Latency | undefined {
  const latency = record(data);
  const us = latency?.["us"];
  if (latency === undefined || typeof us !== "number") return undefined;
  return {
    us,
    baselineUs: figure(latency["baseline_us"]),
    baselineSource: words(record(latency["baseline"])?.["source"]) === "" ? "modelled" : "measured",
    rooflineUs: figure(latency["roofline_us"]),
    source: words(latency["source"]),
    chip: words(latency["chip"]),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function words(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function figure(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** Short enough that the word at its end is not cut off in a narrow side bar. */
export function latencyLine({ latency }: Kernel): string {
  return latency === undefined ? t("no latency") : latencyWords(latency);
}

export function latencyWords({ us, source }: Figure): string {
  return `${digits(us)} µs ${sourceWord(source)}`;
}

/**
 * How many times as fast. Empty for figures that do not compare: those of different sources, but that an estimate
 * may stand under what eager PyTorch was measured at.
 */
export function gain(before: Figure, now: Figure, isEager: boolean): string {
  const comparable = before.source === now.source || (isEager && now.source === "modelled");
  const times = comparable ? timesAsFast(before.us, now.us) : "";
  return times && `${times}×`;
}

/** The gain of a kernel that is accepted, over eager PyTorch. */
export function gainOf({ latency }: Kernel): string {
  return latency === undefined ? "" : gain({ us: latency.baselineUs, source: latency.baselineSource }, latency, true);
}

/** Where a figure comes from, in the editor's language; it is never left out. */
export function sourceWord(source: string): string {
  if (source === "modelled") return t("estimated");
  return source === "measured" ? t("measured") : source;
}

/** Evidence, one fact a line. */
export function evidence(kernel: Kernel): string[] {
  const { latency } = kernel;
  const before = latency !== undefined && latency.baselineUs > 0 ? `${t("eager {0} µs", digits(latency.baselineUs))} ${sourceWord(latency.baselineSource)}` : "";
  const bound = latency !== undefined && latency.rooflineUs > 0 ? `${t("roofline limit {0} µs", digits(latency.rooflineUs))} ${sourceWord("modelled")}` : "";
  return [
    latencyLine(kernel),
    before,
    bound,
    latency === undefined || latency.chip === "" ? "" : t("chip {0}", latency.chip),
    kernel.verifier === "" ? "" : t("verifier {0}", kernel.verifier),
    kernel.gates.map((gate) => `${gate.name} ${gate.status}`).join(", "),
  ].filter((line) => line !== "");
}

/** How many times as fast; empty for about as fast as before, which is no gain. */
export function timesAsFast(before: number, now: number): string {
  const times = before > 0 && now > 0 ? (before / now).toFixed(1) : "1.0";
  return times === "1.0" ? "" : times;
}

/** As many digits as a figure in microseconds deserves, in threes as the server writes them. */
export function digits(us: number): string {
  if (us >= 100) return Math.round(us).toLocaleString("en-US");
  return us >= 1 ? us.toFixed(1) : us.toPrecision(2);
}
