import assert from "node:assert/strict";
import { test } from "node:test";
import { escape } from "../src/commandPage";
import { evidencePage, latencyRows, LINKED } from "../src/evidence";
import { pageForEditor } from "../src/page";
import { readReview, type Review } from "../src/review";
import { KERNEL, REVIEW } from "./doubles/server";
import manifest from "../package.json";

function review(changes: object = {}): Review {
  const read = readReview({ status: "shown", review: { ...REVIEW, ...changes } });
  assert.ok(read !== undefined);
  return read;
}

const page = (changes: object = {}): string => evidencePage(review(changes), "n0nce", "en");

test("the page runs no script and loads nothing", () => {
  const text = page();
  assert.match(text, /content="default-src 'none'; style-src 'nonce-n0nce'"/);
  assert.doesNotMatch(text, /<script|style="|\son\w+=|https?:|src="/);
});

test("every link runs a command that the panel allows and the manifest has", () => {
  const links = [...page({ parts: [{ regionId: "p", line: 1, words: "" }] }).matchAll(/href="command:([\w.]+)/g)].map(([, name]) => name);
  const known = manifest.contributes.commands.map(({ command }) => command);
  assert.deepEqual([...new Set(links)].sort(), [...LINKED].sort());
  // A link with the name of a file is the page's own.
  for (const command of LINKED.filter((name) => name !== "evokernel.showKernelFile")) assert.ok(known.includes(command), command);
});

for (const evil of ["<script>alert(1)</script>", '"><a href="command:x">', "' onclick='x"]) {
  test(`${evil} is shown as what it is`, () => {
    const text = page({ name: evil, why: [evil], guards: [{ name: evil, condition: evil }, { name: "", condition: evil }], files: [{ name: evil, before: "", after: "x" }] });
    assert.doesNotMatch(text, /<script|<a href="command:x"|\sonclick='/);
    assert.ok(text.includes(escape(evil)));
  });
}

test("latencies are in order, each with its source, and none that is unknown", () => {
  const vendor = { name: "npu_softmax", us: 50, source: "measured" };
  const rows = latencyRows(review({ vendor, installed: { ...KERNEL, sourceId: "old", us: 40 } }));
  assert.deepEqual(rows, [
    ["Eager", 412.4, "modelled"],
    ["npu_softmax", 50, "measured"],
    ["Accepted kernel", 40, "modelled"],
    ["This kernel", 35.2, "modelled"],
    ["Roofline limit", 31, "modelled"],
  ]);
  assert.equal(latencyRows(review({ kernel: { ...KERNEL, boundUs: 0 } })).length, 2);
});

test("modelled and measured figures are told apart, and make no ratio", () => {
  const text = page({ kernel: { ...KERNEL, source: "measured" } });
  assert.ok(text.includes("412 µs estimated → <b>35.2 µs</b> measured</p>"));
  assert.equal(latencyRows(review({ kernel: { ...KERNEL, source: "measured" } }))[0]?.[2], "modelled");
});

test("about as fast as before is no gain", () => {
  const text = page({ kernel: { ...KERNEL, us: 410 } });
  assert.ok(text.includes("412 µs → <b>410 µs</b> estimated</p>"));
});

test("the evidence names what a person decides by", () => {
  const text = page();
  for (const words of [
    "412 µs → <b>35.2 µs</b> estimated, 11.7×",
    "Rows stay in the unified buffer.",
    "float32 512×32000",
    "1.0e-6 absolute, 2.0e-7 relative",
    "<th scope=\"row\"><code>x</code></th><td>is float32 of 512 x 32000.</td>",
    "<td colspan=\"2\">All tensors are on one NPU.</td>",
    "correctness: passed – 30 cases",
    "<p>MTE2</p>",
    "op_kernel.cpp (new)",
  ]) {
    assert.ok(text.includes(words), words);
  }
  assert.ok(text.indexOf("MTE2</th>") < text.indexOf("V</th>"), "the busiest pipe comes first");
});

test("figures with their sources come first, then guards, and the rest is folded", () => {
  const text = page({ kernel: { ...KERNEL, source: "measured" } });
  const order = ["<h2>Latency · ascend910b1</h2>", "measured on ascend910b1", "<h2>Guards</h2>", "<details>"].map((words) => text.indexOf(words));
  assert.deepEqual(order, [...order].sort((left, right) => left - right));
  assert.ok(order.every((at) => at > 0));
  const folded = [...text.matchAll(/<summary>([^<]*)/g)].map(([, title]) => title);
  assert.deepEqual(folded, ["Why it is faster", escape("The kernel's files"), "How busy each pipe is", "What was verified", "How it works"]);
  assert.doesNotMatch(text, /<details open/);
  assert.equal([...text.matchAll(/<h2>/g)].length, 2);
});

test("pictures are hidden from screen readers, sections and buttons have names", () => {
  const text = page();
  for (const [svg] of text.matchAll(/<svg[^>]*>/g)) assert.match(svg, /aria-hidden="true"/);
  for (const [, label] of text.matchAll(/<(?:section|nav)([^>]*)>/g)) assert.match(label ?? "", /aria-label="[^"]+"/);
});

test("a kernel that is installed is not decided about again", () => {
  const text = page({ installed: KERNEL });
  assert.doesNotMatch(text, /command:evokernel\.(accept|reject|snooze|never)/);
  assert.ok(text.includes("412 µs → <b>35.2 µs</b>"));
  assert.deepEqual(latencyRows(review({ installed: KERNEL })).map(([name]) => name), ["Eager", "This kernel", "Roofline limit"]);
});

test("a page is dark where the editor is", () => {
  const page = "<style>:root { color-scheme: light dark } @media (prefers-color-scheme: dark) { }</style>";
  assert.equal(pageForEditor(page, "n", true), "<style>:root { color-scheme: dark } @media all { }</style>");
  assert.equal(pageForEditor(page, "n", false), "<style>:root { color-scheme: light } @media not all { }</style>");
});

test("accept some is offered where there are parts", () => {
  assert.doesNotMatch(page(), /evokernel\.acceptSome/);
  assert.match(page({ parts: [{ regionId: "p", line: 1, words: "w" }] }), /evokernel\.acceptSome/);
});

test("a page of the server's runs its own scripts alone", () => {
  const made = pageForEditor('<html><head></head><body><script id="a">1</script><script>2</script></body></html>', "n0nce", true);
  assert.match(made, /<head>\n<meta http-equiv="Content-Security-Policy" content="default-src 'none'; .*script-src 'nonce-n0nce'">/);
  assert.equal([...made.matchAll(/<script nonce="n0nce"/g)].length, 2);
});
