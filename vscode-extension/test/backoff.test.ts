import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff } from "../src/backoff";

test("the wait doubles up to a minute and never ends", () => {
  const backoff = new Backoff();
  const waits = Array.from({ length: 9 }, () => {
    backoff.started(1_000);
    return backoff.crashed(2_000);
  });
  assert.deepEqual(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  assert.equal(backoff.count, 9);
});

test("a server that ran for three minutes starts a new count", () => {
  const backoff = new Backoff();
  backoff.started(1_000);
  backoff.crashed(2_000);
  backoff.started(10_000);
  assert.equal(backoff.crashed(190_000), 1_000);
  assert.equal(backoff.count, 1);
});

test("a server that never came up does not count as healthy", () => {
  const backoff = new Backoff();
  backoff.crashed(1_000_000);
  assert.equal(backoff.crashed(9_000_000), 2_000);
});

test("asking for a restart forgets the crashes", () => {
  const backoff = new Backoff();
  backoff.crashed(0);
  backoff.reset();
  assert.equal(backoff.count, 0);
});
