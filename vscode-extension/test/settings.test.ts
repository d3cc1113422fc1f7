import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import manifest from "../package.json";
import { needsRestart, OWN_SETTINGS, SERVER_NAMES, serverSettings } from "../src/settings";

const properties: Readonly<Record<string, { readonly default: unknown; readonly enum?: readonly string[] }>> =
  manifest.contributes.configuration.properties;
// The bundle of this test lies in out/test/, below the extension's folder.
const domain = readFileSync(`${__dirname}/../../../evokernel_core/domain/settings.py`, "utf8");

test("every setting of the manifest is read by somebody", () => {
  const known = [...Object.keys(SERVER_NAMES), ...OWN_SETTINGS].map((key) => `evokernel.${key}`);
  assert.deepEqual(Object.keys(properties).sort(), known.sort());
});

for (const [setting, kind] of [
  ["proposer", "ProposerName"],
  ["policy", "PolicyName"],
  ["retrieval", "RetrievalName"],
  ["model.protocol", "ModelProtocol"],
  ["model.effort", "Effort"],
] as const) {
  test(`the choices of ${setting} are the server's`, () => {
    const body = domain.split(`class ${kind}(StrEnum):`)[1]?.split("class ")[0] ?? "";
    const choices = [...body.matchAll(/^ {4}[A-Z]+ = "(\w+)"/gm)].map((match) => match[1]);
    assert.deepEqual(properties[`evokernel.${setting}`]?.enum, choices);
  });
}

test("the defaults are the server's", () => {
  assert.match(domain, new RegExp(`target: str = "${String(properties["evokernel.target"]?.default)}"`));
  assert.equal(properties["evokernel.chip"]?.default, "", "the server takes the target's own");
  assert.match(domain, new RegExp(`budget: int = ${String(properties["evokernel.budget"]?.default)}\n`));
});

for (const [setting, field] of [
  ["samples", "samples"],
  ["answerTokens", "answer_tokens"],
  ["idleTimeout", "idle_timeout_s"],
  ["totalTimeout", "total_timeout_s"],
  ["tokenBudget", "token_budget"],
  ["dayTokenBudget", "day_token_budget"],
  ["moneyBudget", "money_budget"],
  ["dayMoneyBudget", "day_money_budget"],
  ["inputPrice", "input_price"],
  ["outputPrice", "output_price"],
] as const) {
  test(`the default of model.${setting} is the server's`, () => {
    const value = new RegExp(`^ {4}${field}: \\w+ = ([\\d._]+)$`, "m").exec(domain)?.[1]?.replaceAll("_", "");
    assert.equal(properties[`evokernel.model.${setting}`]?.default, Number(value));
  });
}

test("settings go out under the server's names", () => {
  const values: Record<string, unknown> = { interpreter: "", "verifier.url": "http://v", "inlayHints.enabled": false };
  const settings = serverSettings((key) => values[key], "/envs/python");
  assert.equal(settings["verifierUrl"], "http://v");
  assert.equal(settings["inlayHints"], false);
  assert.equal(settings["interpreter"], "/envs/python");
});

test("an interpreter that was set is not replaced", () => {
  assert.equal(serverSettings(() => "/mine", "/envs/python")["interpreter"], "/mine");
  assert.equal(serverSettings(() => "", undefined)["interpreter"], "");
});

test("only clearing a setting takes a restart", () => {
  assert.equal(needsRestart({ verifierUrl: "http://v" }, { verifierUrl: "" }), true);
  assert.equal(needsRestart({ verifierUrl: "" }, { verifierUrl: "" }), false);
  assert.equal(needsRestart({ temperature: 0.7 }, { temperature: null }), true);
  assert.equal(needsRestart({ temperature: null }, { temperature: 0.7 }), false);
  assert.equal(needsRestart({ budget: 30, verifierUrl: "" }, { budget: 10, verifierUrl: "http://v" }), false);
});
