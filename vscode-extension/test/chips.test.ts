import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { chips, gpus, setting, words } from "../chips.mjs";

// `npm test` runs in the extension's folder.
const read = (name: string): string => readFileSync(name, "utf8");

test("the chips of the setting are those that the server has", () => {
  const folders = ["../evokernel_core/hardware/ascend/chips", "../evokernel_core/hardware/gpu/gpus"];
  const files = folders.flatMap((folder) => readdirSync(folder)).filter((file) => file.endsWith(".toml"));
  const manifest = JSON.parse(read("package.json")) as {
    contributes: { configuration: { properties: { "evokernel.chip": { enum: string[]; default: string } } } };
  };
  const chip = manifest.contributes.configuration.properties["evokernel.chip"];
  assert.deepEqual([...chip.enum].sort(), ["", ...files.map((file) => file.replace(".toml", ""))].sort());
  assert.ok(chip.enum.includes(chip.default));
  assert.ok(read("package.json").includes(setting()), "run `node chips.mjs`");
});

test("what is said of a chip is what its file says", () => {
  for (const { cores, mhz, gbps } of gpus()) assert.ok([cores, mhz, gbps].every(Number.isInteger));
  for (const { cube, vector, mhz, gbps } of chips()) assert.ok([cube, vector, mhz, gbps].every(Number.isInteger));
  for (const [file, said] of Object.entries(words())) {
    const found = JSON.parse(read(file)) as Record<string, string>;
    for (const [key, text] of Object.entries(said)) assert.equal(found[key], text, "run `node chips.mjs`");
  }
});
