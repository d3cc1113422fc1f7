import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { trajectory } from "../src/chart";
import { page } from "../src/dashboardPage";
import { shell } from "../src/dashboardShell";
import { readState, type DashboardState } from "../src/dashboardState";
import { inEnglish, translateWith } from "../src/l10n";
import { html, Markup } from "../src/markup";

// `npm test` runs in the extension's folder; the states are those of tests/e2e/dashboard.
const STATES = JSON.parse(readFileSync("../tests/e2e/dashboard/states.json", "utf8")) as Readonly<Record<string, unknown>>;
const HOSTILE = `"><script>alert('x')</script>&`;

function state(name: string): DashboardState {
  const found = readState({ status: "shown", dashboard: STATES[name] });
  assert.ok(found);
  return found;
}

const drawn = (name: string): string => page(state(name), "", "en").html;

test("values are text unless a template made them", () => {
  assert.equal(html`<p title="${HOSTILE}">${new Markup("<b>")}${["a"].map((item) => html`${item}`)}</p>`.html,
    `<p title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;"><b>a</p>`);
});

test("no text of the server becomes markup", () => {
  const hostile = JSON.parse(JSON.stringify(STATES["many"]), (_, value: unknown) =>
    typeof value === "string" ? HOSTILE : value) as unknown;
  const made = page(readState({ dashboard: hostile }), HOSTILE, "en").html;
  assert.doesNotMatch(made, /<script|onerror=/);
  assert.match(made, /&lt;script&gt;/);
});

test("what is no dashboard is none, and what lacks parts is read", () => {
  for (const answer of [undefined, null, {}, { dashboard: 3 }, { status: "refused" }]) assert.equal(readState(answer), undefined);
  const empty = readState({ dashboard: { jobs: [null, 3, { attempt: "x", bestUs: null }], kernels: "?" } });
  assert.ok(empty);
  assert.equal(empty.jobs.length, 1);
  assert.equal(empty.jobs[0]?.attempt, 0);
  assert.equal(empty.jobs[0].bestUs, undefined);
  assert.match(page(empty, "", "en").html, /Jobs/);
});

test("each state of a job is in words, and only unfinished ones can be cancelled", () => {
  const made = drawn("many");
  for (const word of ["queued", "running", "waiting until it can be verified", "done", "failed", "cancelled"]) assert.ok(made.includes(`>${word}<`), word);
  const unfinished = state("many").jobs.filter((job) => ["queued", "running", "waiting"].includes(job.state));
  assert.equal([...made.matchAll(/data-action="cancel"/g)].length, unfinished.length);
});

test("a figure is never without its source", () => {
  const made = drawn("many");
  for (const { us, source } of state("many").kernels) if (us !== undefined) assert.ok(made.includes(source === "modelled" ? "estimated" : source));
  assert.match(made, /µs measured/);
  assert.match(made, /µs estimated/);
});

test("nothing done yet is said, with what to do", () => {
  const made = drawn("none");
  assert.match(made, /Choose “Generate NPU kernel” or “Generate Triton kernel”/);
  assert.match(made, /No kernel is in your code yet/);
  assert.doesNotMatch(made, /NaN|undefined|Infinity/);
});

test("every button has a name of its own", () => {
  const names = [...drawn("many").matchAll(/<button[^>]*aria-label="([^"]*)"/g)].map(([, name]) => name);
  assert.ok(names.length > 10);
  assert.deepEqual(names.filter((name, n) => names.indexOf(name) !== n), []);
});

test("nothing of the memory is deleted by a button that stands open on the page", () => {
  const made = drawn("many");
  const [open = "", menu = ""] = made.split('<details data-key="deletion">');
  assert.doesNotMatch(open, /Delete my decisions|Delete the whole memory/);
  assert.match(menu.split("</details>")[0] ?? "", /Delete my decisions…[^]*Delete the whole memory…/);
});

test("before the first answer, and when there is none", () => {
  assert.match(page(undefined, "", "en").html, /Asking the server/);
  const failed = page(undefined, "The EvoKernel server is not running.", "en").html;
  assert.match(failed, /role="alert">The EvoKernel server is not running/);
  assert.doesNotMatch(failed, /Asking/);
});

test("a chart stays in its frame and the line never rises", () => {
  const numbers = [{ attempt: 1, us: 40 }, { attempt: 3, us: 90 }, { attempt: 4, us: 22 }, { attempt: 9, us: 30 }];
  const made = trajectory(numbers, 18).html;
  const path = /class="best" d="([^"]*)"/.exec(made)?.[1] ?? "";
  const down = [...path.matchAll(/V([\d.]+)/g)].map(([, y]) => Number(y));
  assert.deepEqual(down, [...down].sort((a, b) => a - b));
  for (const [, x] of made.matchAll(/cx="([\d.]+)"/g)) assert.ok(Number(x) >= 0 && Number(x) <= 240);
  for (const [, y] of made.matchAll(/c?y1?="([\d.]+)"/g)) assert.ok(Number(y) >= 0 && Number(y) <= 64);
  assert.equal(trajectory(numbers.slice(0, 1), 18).html, "");
  assert.doesNotMatch(trajectory([{ attempt: 1, us: 5 }, { attempt: 2, us: 5 }], undefined).html, /NaN|Infinity/);
});

test("the whole page is said in the person's language", () => {
  const chinese = JSON.parse(readFileSync("l10n/bundle.l10n.zh-cn.json", "utf8")) as Record<string, string>;
  translateWith((message, ...args) => inEnglish(chinese[message] ?? message, ...args));
  const made = drawn("none");
  translateWith(inEnglish);
  const words = made.replace(/<[^>]*>/g, " ").replaceAll("EvoKernel", "").match(/[A-Za-z]{3,}/g) ?? [];
  // what the server said is in its state, not on the page
  const said = JSON.stringify(STATES["none"]);
  assert.deepEqual(words.filter((word) => !said.includes(word) && !["NPU", "Triton"].includes(word)), []);
});

test("the document allows its own script and style alone", () => {
  const made = shell({ nonce: "abc", source: "https://own", script: "https://own/s.js", style: "https://own/s.css", locale: "zh-cn", words: { a: HOSTILE } });
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(made)?.[1];
  assert.equal(policy, "default-src &#39;none&#39;; style-src https://own; script-src &#39;nonce-abc&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;");
  assert.match(made, /<html lang="zh-cn">/);
  assert.equal([...made.matchAll(/<script/g)].length, 1);
});
