import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, choose, describe, type Outcome, type Surroundings, type Trial } from "../src/fallback";

const EVERYTHING: Surroundings = {
  configured: ["/opt/evokernel", "lsp", "--verbose"],
  selectedInterpreter: "/envs/torch/bin/python",
  folders: ["/ws/one", "/ws/two"],
  trusted: true,
  platform: "linux",
};

function commands(around: Partial<Surroundings>): string[] {
  return candidates({ ...EVERYTHING, ...around }).map(({ command }) => command);
}

/** A machine on which only these commands work. */
function machine(...working: string[]): (trial: Trial) => Promise<Outcome> {
  return ({ command }) =>
    Promise.resolve(
      working.includes(command) ? { ok: true, version: "0.1.0" } : { ok: false, reason: `${command} does not exist` },
    );
}

test("the order is: setting, selected interpreter, workspace, PATH, python3", () => {
  assert.deepEqual(commands({}), [
    "/opt/evokernel",
    "/envs/torch/bin/python",
    "/ws/one/.venv/bin/evokernel",
    "/ws/one/venv/bin/evokernel",
    "/ws/two/.venv/bin/evokernel",
    "/ws/two/venv/bin/evokernel",
    "evokernel",
    "python3",
  ]);
});

test("what is not set is not tried", () => {
  const around = { configured: [], selectedInterpreter: undefined, folders: [] };
  assert.deepEqual(commands(around), ["evokernel", "python3"]);
  assert.deepEqual(commands({ ...around, configured: [""], selectedInterpreter: "" }), ["evokernel", "python3"]);
});

test("an untrusted workspace brings no command", () => {
  assert.deepEqual(commands({ trusted: false }), ["/opt/evokernel", "evokernel", "python3"]);
});

test("Windows has its own places", () => {
  const around: Partial<Surroundings> = { platform: "win32", folders: ["C:\\ws"], configured: [] };
  assert.deepEqual(commands(around).slice(1), [
    "C:\\ws\\.venv\\Scripts\\evokernel.exe",
    "C:\\ws\\venv\\Scripts\\evokernel.exe",
    "evokernel",
    "python",
  ]);
});

test("a configured command is run as it is written", () => {
  const [first] = candidates(EVERYTHING);
  assert.deepEqual(first?.args, ["lsp", "--verbose"]);
});

test("an interpreter never imports the package from the working directory", () => {
  for (const candidate of candidates(EVERYTHING).filter(({ command }) => /python/.test(command))) {
    assert.equal(candidate.args[0], "-P");
    assert.equal(candidate.trial.kind === "version" && candidate.trial.args[0], "-P");
  }
});

for (const [name, working, expected, passedOver] of [
  ["the first that works", ["/opt/evokernel", "evokernel"], "/opt/evokernel", 0],
  ["a wrong setting does not stop the others", ["/ws/two/.venv/bin/evokernel", "python3"], "/ws/two/.venv/bin/evokernel", 4],
  ["the last resort", ["python3"], "python3", 7],
] as const) {
  test(`choose: ${name}`, async () => {
    const choice = await choose(candidates(EVERYTHING), machine(...working));
    assert.equal(choice.chosen?.command, expected);
    assert.equal(choice.passedOver.length, passedOver);
  });
}

test("choose: nothing works, and every reason is kept", async () => {
  const choice = await choose(candidates(EVERYTHING), machine());
  assert.equal(choice.chosen, undefined);
  assert.equal(choice.passedOver.length, 8);
  assert.equal(choice.passedOver[6]?.reason, "evokernel does not exist");
});

test("choose: what comes after the first that works is not run", async () => {
  const tried: string[] = [];
  await choose(candidates(EVERYTHING), (trial) => {
    tried.push(trial.command);
    return Promise.resolve({ ok: true, version: "" });
  });
  assert.deepEqual(tried, ["/opt/evokernel"]);
});

test("describe names the place, the command and the version", () => {
  const candidate = candidates({ ...EVERYTHING, configured: [], selectedInterpreter: undefined })[0];
  assert.ok(candidate !== undefined);
  assert.equal(describe(candidate, "0.1.0"), ".venv of the workspace: /ws/one/.venv/bin/evokernel (0.1.0)");
  assert.equal(describe(candidate, ""), ".venv of the workspace: /ws/one/.venv/bin/evokernel");
});
