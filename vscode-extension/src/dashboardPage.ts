/**
 * The dashboard's page: HTML from what the server answered. Knows neither VS Code nor a browser, and remembers
 * nothing. Each thing that can be focused or opened has a `data-key`, by which it is found again in the next page.
 */
import { trajectory } from "./chart";
import type { DashboardJob, DashboardKernel, DashboardOffer, DashboardState, Decision } from "./dashboardState";
import { digits, timesAsFast } from "./kernels";
import { jobState } from "./jobState";
import { t } from "./l10n";
import { html, NONE, type Markup } from "./markup";

/** What a button asks the editor to do, with its argument as the server or the editor takes it. */
export interface Asked {
  readonly action: "cancel" | "open" | "review" | "timeline" | "refine" | "forget" | "refresh" | "settings";
  readonly argument: Readonly<Record<string, string | number>>;
}

const MOST_DIGITS = 1;

/** `problem` is why the server gave no newer state; `locale` is the one of dates and numbers. */
export function page(state: DashboardState | undefined, problem: string, locale: string): Markup {
  const trouble = problem === "" ? NONE : html`<p class="problem" role="alert">${problem}</p>`;
  if (state === undefined) {
    const waiting = problem === "" ? html`<p>${t("Asking the server…")}</p>` : NONE;
    return html`${heading()}${trouble}${waiting}`;
  }
  return html`${heading()}${trouble}${standing(state)}${offers(state.offers)}${jobs(state.jobs)}${kernels(state.kernels)}${lessons(state.memory.learned, state.memory.decisions, locale)}${memory(state.memory, locale)}`;
}

function heading(): Markup {
  return html`<header><h1>EvoKernel</h1>${button({ action: "refresh", argument: {} }, t("Refresh"))}</header>`;
}

function standing({ status, verifier }: DashboardState): Markup {
  const where = verifier.where === "" ? t("this machine") : verifier.where;
  const states: Readonly<Record<string, string>> = {
    idle: t("idle"),
    busy: t("busy"),
    away: t("cannot verify now; jobs wait for it"),
  };
  return section("state", t("State"), html`<dl class="facts">
    ${fact(t("Current file"), status.text)}
    ${fact(t("Verifier"), verifier.name === "" ? t("not known yet") : verifier.name)}
    ${fact(t("Where it runs"), where)}
    ${fact(t("What it does"), states[verifier.state] ?? verifier.state)}
    ${fact(t("Jobs in the queue"), String(verifier.queued))}
  </dl>`);
}

function offers(items: readonly DashboardOffer[]): Markup {
  if (items.length === 0) return NONE;
  return section("offers", t("Waiting for your review"), cards(items.map(offer)));
}

function offer(item: DashboardOffer): Markup {
  const kind = item.ready ? t("new kernel") : t("faster kernel");
  const place = { uri: item.uri, regionId: item.regionId };
  return html`<li class="card"><h3>${item.name} ${badge(kind)}</h3><p>${item.words}</p>
    <p class="actions">${button({ action: "review", argument: place }, t("Review"), item.name)}</p></li>`;
}

function jobs(items: readonly DashboardJob[]): Markup {
  const empty = t("No kernel was asked for in this workspace yet. Choose “Generate NPU kernel” or “Generate Triton kernel” from the lightbulb on a line with a ⚡ hint.");
  if (items.length === 0) return section("jobs", t("Jobs"), html`<p>${empty}</p>`);
  const older = items.filter(({ state }) => !UNFINISHED.includes(state)).slice(RECENT);
  const recent = items.filter((item) => !older.includes(item));
  const more = older.length === 0 ? NONE : html`<details data-key="older jobs"><summary>${t("Older jobs ({0})", older.length)}</summary>${cards(older.map(job))}</details>`;
  return section("jobs", t("Jobs"), html`${cards(recent.map(job))}${more}`);
}

const UNFINISHED = ["queued", "running", "waiting"];
/** Finished jobs that are shown beside those at work. */
const RECENT = 3;

function job(item: DashboardJob): Markup {
  const where = `${baseName(item.file)}:${String(item.line + 1)}`;
  const unfinished = UNFINISHED.includes(item.state);
  return html`<li class="card"><h3>${item.kind === "refine" ? t("Refine") : t("Generate")}: ${where} ${badge(jobState(item.state), item.state)}</h3>
    ${unfinished ? attempts(item) : NONE}
    <dl class="facts">
      ${item.attempt === 0 ? NONE : fact(t("Attempts"), t("{0} of {1}", item.attempt, item.budget))}
      ${item.stage === "" || !unfinished ? NONE : fact(t("Stage"), item.stage === "refine" ? t("refining") : t("drafting"))}
      ${item.bestUs === undefined ? NONE : fact(t("Best so far"), `${microseconds(item.bestUs)} ${sourceWords(item.bestSource)}`)}
      ${item.reason === "" ? NONE : fact(t("What happened"), item.reason)}
    </dl>
    <p class="actions">${button({ action: "open", argument: { uri: item.uri, line: item.line } }, t("Go to code"), where)}${
      unfinished ? button({ action: "cancel", argument: { jobId: item.id } }, t("Cancel"), where) : NONE
    }</p></li>`;
}

function attempts({ attempt, budget }: DashboardJob): Markup {
  const label = t("{0} of {1} attempts", attempt, budget);
  return html`<progress max="${Math.max(1, budget)}" value="${Math.min(attempt, budget)}" aria-label="${label}"></progress>`;
}

function kernels(items: readonly DashboardKernel[]): Markup {
  const empty = t("No kernel is in your code yet.");
  return section("kernels", t("Kernels"), items.length === 0 ? html`<p>${empty}</p>` : cards(items.map(kernel)));
}

function kernel(item: DashboardKernel): Markup {
  const place = { uri: item.uri, name: item.name };
  return html`<li class="card"><h3>${item.name} ${item.stale ? badge(t("out of date"), "waiting") : NONE}</h3>
    ${item.us === undefined ? html`<p>${t("Its package is missing or was changed: restore it from the lightbulb at its call.")}</p>` : figures(item)}
    ${item.us === undefined || item.why === "" ? NONE : html`<p>${item.why}</p>`}
    ${history(item)}
    <p class="actions">${button({ action: "open", argument: { uri: item.uri, line: item.line } }, t("Go to call"), item.name)}${
      item.us === undefined ? NONE : html`${button({ action: "timeline", argument: place }, t("Timeline"), item.name)}${button({ action: "refine", argument: place }, t("Refine"), item.name)}`
    }</p></li>`;
}

function figures(item: DashboardKernel): Markup {
  const now = item.us ?? 0;
  const before = item.baselineUs;
  const gain = item.source === "modelled" && before !== undefined ? timesAsFast(before, now) : "";
  const times = gain && ` (${t("{0} times as fast", gain)})`;
  return html`<dl class="facts">
    ${fact(t("Latency"), `${microseconds(now)} ${sourceWords(item.source)}${times}`)}
    ${before === undefined ? NONE : fact(t("Eager"), `${microseconds(before)} ${sourceWords(item.baselineSource)}`)}
    ${item.boundUs === undefined ? NONE : fact(t("Roofline limit"), `${microseconds(item.boundUs)} ${sourceWords("modelled")}`)}
    ${item.bottleneck === "" ? NONE : fact(t("Bottleneck"), item.bottleneck)}
    ${fact(t("Chip"), item.chip)}
    ${fact(t("Verifier"), item.verifier)}
  </dl>`;
}

function history({ history: tried, boundUs, name, uri, source }: DashboardKernel): Markup {
  const [first, last] = [tried[0], tried.at(-1)];
  if (first === undefined || last === undefined || tried.length < 2) return NONE;
  const best = Math.min(...tried.map(({ us }) => us));
  const words = t("{0} verified kernels, from {1} to {2}.", tried.length, microseconds(first.us), `${microseconds(best)} ${sourceWords(source)}`);
  const legend = t("Points are verified kernels, the line is the best so far, the dashed line the roofline limit.");
  return html`<figure>${trajectory(tried, boundUs)}<figcaption>${words} <span class="quiet">${legend}</span></figcaption></figure>
    <details data-key="${`attempts ${uri} ${name}`}"><summary>${t("All verified attempts")}</summary>
    <table><thead><tr><th scope="col">${t("Attempt")}</th><th scope="col">${t("Latency")}</th></tr></thead><tbody>${tried.map(
      ({ attempt, us }) => html`<tr><td>${attempt}</td><td>${microseconds(us)} ${sourceWords(source)}</td></tr>`,
    )}</tbody></table></details>`;
}

function lessons(learned: readonly string[], decisions: readonly Decision[], locale: string): Markup {
  const empty = t("Nothing yet. Accepting, rejecting and reverting kernels decides what is tried first next time.");
  const taught = learned.length === 0 ? html`<p>${empty}</p>` : html`<ul class="plain">${learned.map((words) => html`<li>${words}</li>`)}</ul>`;
  const taken = decisions.length === 0 ? NONE : html`<details data-key="decisions"><summary>${t("Your last decisions ({0})", decisions.length)}</summary>
    <ul class="plain">${decisions.map((item) => decision(item, locale))}</ul></details>`;
  return section("learned", t("Learned preferences"), html`${taught}${taken}`);
}

function decision({ at, kind, name, detail }: Decision, locale: string): Markup {
  const words: Readonly<Record<string, string>> = {
    accepted: t("accepted"),
    partially_accepted: t("accepted in part"),
    rejected: t("rejected"),
    explained: t("reason given"),
    reverted: t("reverted"),
    survived: t("stayed in your code"),
    snoozed: t("put off"),
  };
  const when = new Date(at * 1000);
  const more = detail === "" ? "" : ` (${detail})`;
  return html`<li><time datetime="${when.toISOString()}">${when.toLocaleString(locale)}</time> ${name}: ${words[kind] ?? kind}${more}</li>`;
}

function memory({ path, items, bytes }: DashboardState["memory"], locale: string): Markup {
  return section("memory", t("Memory"), html`<dl class="facts">
    ${fact(t("File"), path)}
    ${fact(t("Memory entries"), items.toLocaleString(locale))}
    ${fact(t("Size"), t("{0} MB", (bytes / 1e6).toFixed(MOST_DIGITS)))}
  </dl>
  <p>${t("It is yours and stays on this machine. Deleting is for good; kernels in your code stay.")}</p>
  <p class="actions">${button({ action: "settings", argument: {} }, t("Settings"))}</p>
  <details data-key="deletion"><summary>${t("Delete")}</summary>
  <p class="actions">${button({ action: "forget", argument: { what: "decisions" } }, t("Delete my decisions…"))}${button({ action: "forget", argument: { what: "all" } }, t("Delete the whole memory…"))}</p></details>`);
}

function section(id: string, title: string, content: Markup): Markup {
  return html`<section aria-labelledby="${id}"><h2 id="${id}" tabindex="-1">${title}</h2>${content}</section>`;
}

function cards(items: readonly Markup[]): Markup {
  return html`<ul class="cards">${items}</ul>`;
}

function fact(name: string, value: string): Markup {
  return html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
}

/** The words tell the state; a border and a sign set it off for who sees them. */
function badge(words: string, state = ""): Markup {
  return html`<span class="badge" data-state="${state}">${words}</span>`;
}

/** `about` tells a screen reader which of many equal buttons this is. */
function button(asked: Asked, label: string, about = ""): Markup {
  const argument = JSON.stringify(asked.argument);
  const name = about === "" ? label : `${label}: ${about}`;
  return html`<button type="button" data-action="${asked.action}" data-argument="${argument}" data-key="${`${asked.action} ${argument}`}" aria-label="${name}">${label}</button>`;
}

function microseconds(us: number): string {
  return t("{0} µs", digits(us));
}

/** `modelled` and `measured` are different words in every language. */
function sourceWords(source: string): string {
  return source === "measured" ? t("measured") : source === "modelled" ? t("estimated") : source;
}

function baseName(file: string): string {
  return file.split(/[\\/]/).at(-1) ?? file;
}
