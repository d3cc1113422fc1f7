import assert from "node:assert/strict";
import { test } from "node:test";
import { changedFiles, changesPython, readReasons, readReview, readVariants, withoutOverlap } from "../src/review";
import { comparedWith, variantRow } from "../src/variantRow";
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

const [installed, best, plain] = readVariants({
  variants: [
    { ...KERNEL, sourceId: "installed", installed: true },
    { ...KERNEL, sourceId: "best", us: 30, best: true },
    { ...KERNEL, sourceId: "plain", us: 50, bottleneck: "V-bound: 88 % busy, idle 11 %", rejected: true, strategy: ["One pass.", "Two buffers."] },
    { us: 1 },
  ],
});
assert.ok(installed !== undefined && best !== undefined && plain !== undefined);

test("a variant reads as its latency, what binds it, and how it works", () => {
  assert.deepEqual(variantRow(plain), {
    label: "50.0 µs estimated",
    description: "rejected · V-bound",
    detail: "One pass. Two buffers.",
  });
  assert.equal(variantRow(installed).description, "accepted · MTE2");
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
