import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { attempt } from "../src/probe";

const folder = mkdtempSync(join(tmpdir(), "evokernel-probe-"));
after(() => {
  rmSync(folder, { recursive: true });
});

function script(name: string, body: string): string {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

function version(command: string): ReturnType<typeof attempt> {
  return attempt({ kind: "version", command, args: ["--version"] });
}

test("a command that answers gives its version", async () => {
  const command = script("good", 'echo "evokernel, version 0.1.0"');
  assert.deepEqual(await version(command), { ok: true, version: "0.1.0" });
});

test("a command that fails gives the last line that it wrote", async () => {
  const command = script("bad", 'echo "Traceback" >&2; echo "ModuleNotFoundError: evokernel_core" >&2; exit 1');
  assert.deepEqual(await version(command), { ok: false, reason: "ModuleNotFoundError: evokernel_core" });
});

test("a command that fails silently is named", async () => {
  const command = script("silent", "exit 3");
  assert.deepEqual(await version(command), { ok: false, reason: `${command} failed` });
});

test("a command that is not there is said not to exist", async () => {
  const command = join(folder, "absent");
  assert.deepEqual(await version(command), { ok: false, reason: `${command} does not exist` });
});

test("an executable is found by its path and on PATH, a plain file is not", async () => {
  const command = script("evokernel-here", "exit 0");
  const plain = join(folder, "plain");
  writeFileSync(plain, "");
  const before = process.env["PATH"];
  process.env["PATH"] = folder;
  try {
    assert.deepEqual(await attempt({ kind: "executable", command }), { ok: true, version: "" });
    assert.deepEqual(await attempt({ kind: "executable", command: "evokernel-here" }), { ok: true, version: "" });
    assert.equal((await attempt({ kind: "executable", command: plain })).ok, false);
    assert.equal((await attempt({ kind: "executable", command: "absent" })).ok, false);
  } finally {
    process.env["PATH"] = before;
  }
});
