/** The page beside a review: what the kernel's figures rest on. */
import { commandPage, escape, link } from "./commandPage";
import { digits, gain, latencyWords, sourceWord } from "./kernels";
import { t } from "./l10n";
import { changedFiles, changesPython, changesSomething, isDecidable, type FileChange, type KernelFacts, type Review } from "./review";

/** Commands that the page's links may run. */
export const LINKED = [
  "evokernel.acceptKernel",
  "evokernel.acceptSome",
  "evokernel.rejectKernel",
  "evokernel.snoozeKernel",
  "evokernel.neverHere",
  "evokernel.compareVariants",
  "evokernel.showTimeline",
  "evokernel.showChange",
  "evokernel.showKernelFile",
  "evokernel.showKernelFiles",
];

/** `nonce` is a fresh random word; only the style that carries it is used. */
export function evidencePage(review: Review, nonce: string, language: string): string {
  const body = `<header>
<h1>${escape(review.name)}</h1>
<p class="lead">${lead(review)}</p>
${actions(review)}
</header>
${sections(review).join("\n")}`;
  return commandPage(review.title, body, nonce, language);
}

/** What decides first: figures and when the kernel runs; folded, what stands behind them. */
function sections(review: Review): string[] {
  const { kernel } = review;
  const reasons = isDecidable(review) ? t("Why it is faster") : t("What is known of it");
  return [
    latencies(review),
    guards(review),
    closer(review),
    folded(reasons, sentences(review.why)),
    folded(t("The kernel's files"), files(review)),
    folded(t("How busy each pipe is"), pipes(kernel)),
    folded(t("What was verified"), checks(kernel)),
    folded(t("How it works"), sentences(kernel.strategy)),
  ];
}

/** `412 µs → 35.2 µs modelled, 11.7×`. */
function lead(review: Review): string {
  const { kernel, installed } = review;
  const eager = { us: kernel.baselineUs, source: kernel.baselineSource };
  const before = isDecidable(review) ? (installed ?? eager) : eager;
  const times = gain(before, kernel, before === eager);
  const was = before.source === kernel.source ? figure(before.us) : latencyWords(before);
  return `${escape(was)} → <b>${figure(kernel.us)}</b> ${escape(sourceWord(kernel.source))}${times === "" ? "" : `, ${times}`}`;
}

function actions(review: Review): string {
  if (review.stale !== "") return `<p class="stale" role="alert">${escape(t("This review is out of date."))} ${escape(review.stale)}</p>`;
  if (!isDecidable(review)) return `<p class="quiet">${escape(t("This kernel is accepted."))}</p>`;
  const some = review.parts.length > 0 ? link("evokernel.acceptSome", t("Accept Some…")) : "";
  return `<nav aria-label="${escape(t("Decide"))}">
${link("evokernel.acceptKernel", t("Accept"), "primary")}${some}
${link("evokernel.rejectKernel", t("Reject…"))}
${link("evokernel.snoozeKernel", t("Snooze"))}
${link("evokernel.neverHere", t("Never Here"))}
</nav>`;
}

/** Rows of name, latency and where the figure is from, drawn to one scale. */
export function latencyRows({ kernel, installed, vendor }: Review): [string, number, string][] {
  const rows: [string, number, string][] = [
    // The roofline limit no chip has measured.
    [t("Eager"), kernel.baselineUs, kernel.baselineSource],
    ...(vendor === undefined ? [] : [[vendor.name, vendor.us, vendor.source] as [string, number, string]]),
    ...(installed === undefined || installed.sourceId === kernel.sourceId ? [] : [[t("Accepted kernel"), installed.us, installed.source] as [string, number, string]]),
    [t("This kernel"), kernel.us, kernel.source],
    [t("Roofline limit"), kernel.boundUs, "modelled"],
  ];
  return rows.filter(([, us]) => us > 0);
}

function latencies(review: Review): string {
  const rows = latencyRows(review);
  const most = Math.max(...rows.map(([, us]) => us));
  const { baseline, chip } = review.kernel;
  const cells = rows.map(
    ([name, us, source]) =>
      `<tr><th scope="row">${escape(name)}</th><td class="number">${figure(us)}</td><td>${escape(sourceOn(source, chip))}</td><td class="bar">${bar(us / most)}</td></tr>`,
  );
  const head = `<tr><th scope="col">${escape(t("What"))}</th><th scope="col" class="number">${escape(t("Time"))}</th><th scope="col">${escape(t("Source"))}</th><th class="bar" aria-hidden="true"></th></tr>`;
  const interval = baseline === "" ? "" : `<p class="quiet">${escape(t("Eager"))}: ${escape(baseline)}</p>`;
  return section(chip === "" ? t("Latency") : `${t("Latency")} · ${chip}`, `<table>${head}${cells.join("")}</table>${interval}`);
}

/** Where a figure comes from; a device measured it, a model of the device estimated it. */
function sourceOn(source: string, chip: string): string {
  return source === "measured" && chip !== "" ? t("measured on {0}", chip) : sourceWord(source);
}

function pipes(kernel: KernelFacts): string {
  const rows = Object.entries(kernel.pipes)
    .sort(([, left], [, right]) => right - left)
    .map(([name, share]) => {
      const percent = `${Math.round(100 * share)} %`;
      return `<tr><th scope="row">${escape(name)}</th><td class="number">${percent}</td><td>${bar(share)}</td></tr>`;
    });
  const bound = kernel.bottleneck === "" ? "" : `<p>${escape(kernel.bottleneck)}</p>`;
  return rows.length === 0 ? bound : `${bound}<table>${rows.join("")}</table>`;
}

function guards(review: Review): string {
  const rows = review.guards.map(({ name, condition }) =>
    name === ""
      ? `<tr><td colspan="2">${escape(condition)}</td></tr>`
      : `<tr><th scope="row"><code>${escape(name)}</code></th><td>${escape(condition)}</td></tr>`,
  );
  if (rows.length === 0) return "";
  const head = `<tr><th scope="col">${escape(t("Name"))}</th><th scope="col">${escape(t("Condition"))}</th></tr>`;
  return section(t("Guards"), `<table>${head}${rows.join("")}</table>`);
}

function checks(kernel: KernelFacts): string {
  const inputs = kernel.inputs.map(
    ({ name, dtype, shape }) => `<li><code>${escape(name)}</code>: ${escape(dtype)} ${escape(shape.join("×") || t("scalar"))}</li>`,
  );
  const gates = kernel.gates.map(({ name, status, detail }) => {
    const more = detail === "" ? "" : ` – ${detail}`;
    return `<li>${escape(`${name}: ${status}${more}`)}</li>`;
  });
  const error =
    kernel.error === undefined
      ? ""
      : `<p>${escape(t("Greatest error: {0} absolute, {1} relative.", power(kernel.error.abs), power(kernel.error.rel)))}</p>`;
  const by = kernel.verifier === "" ? "" : `<p>${escape(t("Verified by {0}.", kernel.verifier))}</p>`;
  return `${by}${error}${items(inputs)}${items(gates)}`;
}

function closer(review: Review): string {
  const links = [
    ...(changesSomething(review) ? [link("evokernel.showChange", t("Show Change"))] : []),
    ...(changedFiles(review.files).length > 1 ? [link("evokernel.showKernelFiles", t("All Files"))] : []),
    link("evokernel.compareVariants", t("Compare Variants")),
    link("evokernel.showTimeline", t("Timeline")),
  ];
  const python = changesPython(review) || !isDecidable(review) ? "" : `<p class="quiet">${escape(t("Your Python file is unchanged."))}</p>`;
  return `${python}<nav aria-label="${escape(t("Look closer"))}">${links.join("")}</nav>`;
}

function files(review: Review): string {
  return items(
    changedFiles(review.files).map((file) => `<li>${link("evokernel.showKernelFile", fileWords(file), "plain", file.name)}</li>`),
  );
}

function fileWords({ name, before }: FileChange): string {
  return before === "" ? t("{0} (new)", name) : t("{0} (changed)", name);
}

function section(title: string, body: string): string {
  if (body === "") return "";
  return `<section aria-label="${escape(title)}"><h2>${escape(title)}</h2>${body}</section>`;
}

/** Shut until a person asks for it. */
function folded(title: string, body: string): string {
  return body === "" ? "" : `<details><summary>${escape(title)}</summary>${body}</details>`;
}

function sentences(words: readonly string[]): string {
  return items(words.map((sentence) => `<li>${escape(sentence)}</li>`));
}

function items(rows: readonly string[]): string {
  return rows.length === 0 ? "" : `<ul>${rows.join("")}</ul>`;
}

function figure(us: number): string {
  return `${digits(us)} µs`;
}

function power(value: number): string {
  return value === 0 ? "0" : value.toExponential(1);
}

/** A picture of a share; the figure beside it says the same in words. */
function bar(share: number): string {
  const width = (100 * Math.min(1, Math.max(0, share))).toFixed(1);
  return `<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="8"/><rect class="fill" width="${width}" height="8"/></svg>`;
}
