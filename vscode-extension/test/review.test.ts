import assert from "node:assert/strict";
import { test } from "node:test";
import { changedFiles, changesPython, readReasons, readReview, readVariants, withoutOverlap } from "../src/review";
import { comparedWith, variantsPage } from "../src/variantsPage";
import { KERNEL, REVIEW } from "./doubles/server";

for (const answer of [undefined, null, {}, { status: "refused" }, { review: null }, { review: { ...REVIEW, kernel: null } }, { review: [] }]) {
  test(`${JSON.stringify(answer)} is no review`, () => {
    assert.equal(readReview(answer), undefined);
  });
}

test("a review of a server that leaves things out is still one", () => {
  const review = readReview({ review: { uri: REVIEW.uri, kernel: { sourceId: "x" } } });
  assert.ok(review !== undefined);
  assert.deepEqual(review.guards, []);
  assert.equal(review.installed, undefined);
  assert.equal(review.kernel.error, undefined);
  assert.equal(changesPython(review), false);
});

test("files that stay the same are not compared", () => {
  const files = [
    { name: "a", before: "1", after: "2" },
    { name: "b", before: "1", after: "1" },
  ];
  assert.deepEqual(changedFiles(files).map(({ name }) => name), ["a"]);
});

for (const [before, now, after] of [
  [[], ["whole"], ["whole"]],
  [["whole"], ["whole", "a"], ["a"]],
  [["a", "b"], ["a", "b", "whole"], ["whole"]],
  [["a"], ["a", "b"], ["a", "b"]],
  [["a"], [], []],
] as const) {
  test(`choosing ${now.join()} after ${before.join()} leaves ${after.join()}`, () => {
    assert.deepEqual(withoutOverlap("whole", before, now), after);
  });
}

const TILE = { name: "Tile", before: "5,376", after: "11,008", words: "tile raised" };
const BUFFERS = { name: "Buffers", before: "2", after: "<3>", words: "buffers raised" };
const VARIANTS = readVariants({
  variants: [
    { ...KERNEL, sourceId: "installed", attempt: 1, installed: true, changes: [] },
    { ...KERNEL, sourceId: "best", us: 30, attempt: 7, best: true, changes: [TILE, BUFFERS] },
    { ...KERNEL, sourceId: "plain", us: 50, source: "measured", rejected: true, changes: [] },
    { us: 1 },
  ],
});
const [installed, best, plain] = VARIANTS;
assert.ok(installed !== undefined && best !== undefined && plain !== undefined);
const PLACE = { uri: REVIEW.uri, regionId: "r" };

/** The words of each row of the table, cell by cell. */
function rows(all: typeof VARIANTS): string[][] {
  const page = variantsPage(PLACE, all, "n0nce", "en");
  return [...page.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].map(([, row]) =>
    [...(row ?? "").matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell]) => (cell ?? "").replace(/<br>/g, "; ").replace(/<\/a>/g, " ").replace(/<[^>]*>/g, "").trim()),
  );
}

test("variants are a table: latency, attempt, what differs in two words and in the schedule's own fields", () => {
  assert.deepEqual(rows(VARIANTS), [
    ["Latency", "Attempt", "What differs", "Schedule", "State", "Look closer"],
    ["35.2 µs estimated", "1", "", "", "accepted", "Compare"],
    ["30.0 µs estimated", "7", "tile raised", "Tile 5,376 → 11,008; Buffers 2 → &#60;3&#62;", "fastest", "Compare Review"],
    ["50.0 µs measured", "", "same schedule", "", "rejected", "Compare Review"],
  ]);
  assert.deepEqual(rows([best]).at(1)?.at(-1), "Review");
});

test("a variant's links say which kernels they are about, and accept none", () => {
  const page = variantsPage(PLACE, VARIANTS, "n0nce", "en");
  const links = [...page.matchAll(/href="command:([\w.]+)\?([^"]*)"/g)].map(([, name, query]) => [name, JSON.parse(decodeURIComponent((query ?? "").replace(/&#39;/g, "'"))) as unknown]);
  assert.deepEqual(links.slice(0, 3), [
    ["evokernel.compareVariant", [{ ...PLACE, sourceId: "installed", other: "best" }]],
    ["evokernel.compareVariant", [{ ...PLACE, sourceId: "best", other: "installed" }]],
    ["evokernel.reviewVariant", [{ ...PLACE, sourceId: "best" }]],
  ]);
  assert.doesNotMatch(page, /command:evokernel\.a|<script|style="/);
});

test("a variant is compared with the installed one, the installed one with the fastest", () => {
  const all = [plain, best, installed];
  assert.equal(comparedWith(plain, all)?.sourceId, "installed");
  assert.equal(comparedWith(installed, all)?.sourceId, "best");
  assert.equal(comparedWith(best, [plain, best])?.sourceId, "plain");
  assert.equal(comparedWith(plain, [plain]), undefined);
});

test("reasons are read line by line", () => {
  const reasons = readReasons({ reasons: [{ line: 4, code: "svd", why: "No family has it.", help: "" }, "x"] });
  assert.deepEqual(reasons, [{ line: 4, code: "svd", why: "No family has it.", help: "" }]);
});
