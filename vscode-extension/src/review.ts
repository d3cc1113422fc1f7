/** What the server answers about a kernel that waits for a decision, checked before it is shown. */
import { list, number, object, objects, text, texts } from "./read";

/** A place in a file: a region, or an accepted kernel by its name. */
export interface Place {
  readonly uri: string;
  readonly regionId?: string;
  readonly name?: string;
}

export interface Gate {
  readonly name: string;
  readonly status: string;
  readonly detail: string;
}

export interface Input {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly (number | string)[];
}

/** Latencies are microseconds. */
export interface KernelFacts {
  readonly sourceId: string;
  readonly strategy: readonly string[];
  readonly us: number;
  /** `modelled` or `measured`; a figure is never shown without it. */
  readonly source: string;
  readonly chip: string;
  readonly baselineUs: number;
  /** How the baseline is known, and in words with its interval or its row. */
  readonly baselineSource: string;
  readonly baseline: string;
  readonly boundUs: number;
  readonly bottleneck: string;
  /** Share of the time in which each pipe is busy, from 0 to 1. */
  readonly pipes: Readonly<Record<string, number>>;
  readonly verifier: string;
  readonly gates: readonly Gate[];
  readonly inputs: readonly Input[];
  readonly error: { readonly abs: number; readonly rel: number } | undefined;
}

export interface FileChange {
  readonly name: string;
  /** Empty where nothing is installed. */
  readonly before: string;
  readonly after: string;
}

/** What must hold for the kernel to run; about the whole call where `name` is empty. */
export interface Guard {
  readonly name: string;
  readonly condition: string;
}

export interface Part {
  readonly regionId: string;
  readonly line: number;
  readonly words: string;
}

export interface Vendor {
  readonly name: string;
  readonly us: number;
  readonly source: string;
}

export interface Review {
  readonly uri: string;
  readonly file: string;
  readonly regionId: string;
  readonly name: string;
  readonly title: string;
  /** 0-based: of the region or call as it is, and the first one that its edit changes, in the text after it. */
  readonly line: number;
  readonly changeLine: number;
  /** The Python file now, and with the call in place; the same text where the kernel is called already. */
  readonly before: string;
  readonly after: string;
  readonly guards: readonly Guard[];
  readonly why: readonly string[];
  readonly kernel: KernelFacts;
  readonly installed: KernelFacts | undefined;
  readonly vendor: Vendor | undefined;
  readonly files: readonly FileChange[];
  readonly parts: readonly Part[];
  /** Why nothing can be decided about it any more; empty while something can. */
  readonly stale: string;
}

/** A field of a schedule in which two differ; `words` say how. */
export interface Change {
  readonly name: string;
  readonly before: string;
  readonly after: string;
  readonly words: string;
}

export interface Variant extends KernelFacts {
  /** Counted over all that was tried for this code; 0 where that is not known. */
  readonly attempt: number;
  /** From the accepted kernel, or where none is accepted from the fastest. */
  readonly changes: readonly Change[];
  readonly installed: boolean;
  readonly rejected: boolean;
  readonly best: boolean;
}

export interface Reason {
  /** 0-based. */
  readonly line: number;
  readonly code: string;
  readonly why: string;
  readonly help: string;
}

/** Undefined where the server refused; it has told the person why. */
export function readReview(answer: unknown): Review | undefined {
  const data = object(object(answer)?.["review"]);
  const kernel = readKernel(data?.["kernel"]);
  if (data === undefined || kernel === undefined || text(data["uri"]) === "") return undefined;
  const vendor = object(data["vendor"]);
  return {
    uri: text(data["uri"]),
    file: text(data["file"]),
    regionId: text(data["regionId"]),
    name: text(data["name"]),
    title: text(data["title"]),
    line: number(data["line"]),
    changeLine: number(data["changeLine"]),
    before: text(data["before"]),
    after: text(data["after"]),
    guards: objects(data["guards"]).map((guard) => ({ name: text(guard["name"]), condition: text(guard["condition"]) })),
    why: texts(data["why"]),
    kernel,
    installed: readKernel(data["installed"]),
    vendor: vendor && { name: text(vendor["name"]), us: number(vendor["us"]), source: text(vendor["source"]) },
    files: readFiles(data["files"]),
    parts: objects(data["parts"]).map((part) => ({
      regionId: text(part["regionId"]),
      line: number(part["line"]),
      words: text(part["words"]),
    })),
    stale: "",
  };
}

export function readVariants(answer: unknown): Variant[] {
  return objects(object(answer)?.["variants"]).flatMap((data) => {
    const kernel = readKernel(data);
    const flags = { installed: data["installed"] === true, rejected: data["rejected"] === true, best: data["best"] === true };
    const changes = objects(data["changes"]).map((change) => ({
      name: text(change["name"]),
      before: text(change["before"]),
      after: text(change["after"]),
      words: text(change["words"]),
    }));
    return kernel === undefined ? [] : [{ ...kernel, ...flags, attempt: number(data["attempt"]), changes }];
  });
}

/** The files of an answer to `evokernel.compare`, and of a review. */
export function readFiles(files: unknown): FileChange[] {
  return objects(files).map((file) => ({
    name: text(file["name"]),
    before: text(file["before"]),
    after: text(file["after"]),
  }));
}

export function readReasons(answer: unknown): Reason[] {
  return objects(object(answer)?.["reasons"]).map((reason) => ({
    line: number(reason["line"]),
    code: text(reason["code"]),
    why: text(reason["why"]),
    help: text(reason["help"]),
  }));
}

function readKernel(value: unknown): KernelFacts | undefined {
  const data = object(value);
  const sourceId = text(data?.["sourceId"]);
  if (data === undefined || sourceId === "") return undefined;
  const error = object(data["error"]);
  return {
    sourceId,
    strategy: texts(data["strategy"]),
    us: number(data["us"]),
    source: text(data["source"]),
    chip: text(data["chip"]),
    baselineUs: number(data["baselineUs"]),
    baselineSource: text(data["baselineSource"]) || "modelled",
    baseline: text(data["baseline"]),
    boundUs: number(data["boundUs"]),
    bottleneck: text(data["bottleneck"]),
    pipes: shares(data["pipes"]),
    verifier: text(data["verifier"]),
    gates: objects(data["gates"]).map((gate) => ({
      name: text(gate["name"]),
      status: text(gate["status"]),
      detail: text(gate["detail"]),
    })),
    inputs: objects(data["inputs"]).map((input) => ({
      name: text(input["name"]),
      dtype: text(input["dtype"]),
      shape: list(input["shape"]).map((size) => (typeof size === "number" ? size : text(size))),
    })),
    error: error && { abs: number(error["abs"]), rel: number(error["rel"]) },
  };
}

function shares(value: unknown): Record<string, number> {
  const found = Object.entries(object(value) ?? {}).filter((pair): pair is [string, number] => typeof pair[1] === "number");
  return Object.fromEntries(found);
}

/** Whether accepting changes the Python file; a refined kernel changes its package alone. */
export function changesPython(review: Review): boolean {
  return review.before !== review.after;
}

/** Whether accepting changes any file. */
export function changesSomething(review: Review): boolean {
  return changesPython(review) || changedFiles(review.files).length > 0;
}

/** False for a review of the very kernel that is installed: there is nothing to decide. */
export function isDecidable({ kernel, installed }: Review): boolean {
  return installed === undefined || installed.sourceId !== kernel.sourceId;
}

/** The kernel's files that differ from the installed ones. */
export function changedFiles(files: readonly FileChange[]): FileChange[] {
  return files.filter(({ before, after }) => before !== after);
}

export function placeOf({ uri, regionId }: Review): Place {
  return { uri, regionId };
}

/**
 * What is chosen after a change of the choice among a whole and the parts inside it: who takes the whole takes
 * no part of it, and the other way round.
 */
export function withoutOverlap(whole: string, before: readonly string[], now: readonly string[]): string[] {
  const fresh = now.filter((id) => !before.includes(id));
  if (!now.includes(whole) || now.length === 1) return [...now];
  return fresh.includes(whole) ? [whole] : now.filter((id) => id !== whole);
}
