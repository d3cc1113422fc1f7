import assert from "node:assert/strict";
import { test } from "node:test";
import { lastTraceback, ServerLog } from "../src/serverlog";

const LINES = [
  "starting",
  "Traceback (most recent call last):",
  '  File "a.py", line 1, in f',
  "    old()",
  "OldError: first",
  "a line between",
  "Traceback (most recent call last):",
  '  File "b.py", line 2, in g',
  "",
  "    new()",
  "NewError: second",
  "a line after",
];

test("the last traceback ends with its exception", () => {
  assert.equal(lastTraceback(LINES), LINES.slice(6, 11).join("\n"));
});

test("no traceback, no text", () => {
  assert.equal(lastTraceback(["starting", "ready"]), "");
});

test("a traceback that is cut off is given as far as it goes", () => {
  assert.equal(lastTraceback(LINES.slice(0, 3)), LINES.slice(1, 3).join("\n"));
});

test("only the last lines are kept", () => {
  const log = new ServerLog();
  for (let number = 0; number < 1_000; number += 1) log.add(`line ${number}`);
  assert.equal(log.tail(2), "line 998\nline 999");
  assert.equal(log.tail(10_000).split("\n").length, 400);
});

test("the reason is the last line that says something, and short", () => {
  const log = new ServerLog();
  assert.equal(log.reason(), "");
  for (const line of [...LINES.slice(1, 5), "", "  "]) log.add(line);
  assert.equal(log.reason(), "OldError: first");
  log.add("x".repeat(10_000));
  assert.equal(log.reason().length, 200);
});
