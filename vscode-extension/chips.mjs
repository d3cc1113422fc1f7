// The setting evokernel.chip lists the devices of evokernel_core/hardware: `node chips.mjs` writes it anew.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const CHIPS = "../evokernel_core/hardware/ascend/chips";
const GPUS = "../evokernel_core/hardware/gpu/gpus";

/** A whole number of a device's file, or else of the one that it is based on. */
function whole(folder, name, key) {
  const text = readFileSync(`${folder}/${name}.toml`, "utf8");
  const found = new RegExp(`^${key} *= *([\\d_]+)`, "m").exec(text)?.[1];
  const base = /^base *= *"(\w+)"/m.exec(text)?.[1];
  return found === undefined && base !== undefined ? whole(folder, base, key) : Number(found?.replaceAll("_", ""));
}

function names(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".toml"))
    .map((file) => file.replace(/\.toml$/, ""))
    .sort();
}

/** Name, cores, clock and memory bandwidth of each chip, sorted by name. */
export function chips() {
  return names(CHIPS).map((name) => {
    const [cube, vector, mhz, gbps] = ["aic", "aiv", "mhz", "hbm_gbps"].map((key) => whole(CHIPS, name, key));
    return { name, cube, vector, mhz, gbps };
  });
}

/** The same of each GPU. */
export function gpus() {
  return names(GPUS).map((name) => {
    const [cores, mhz, bytes] = ["multiprocessors", "clock_mhz", "peak_bytes_us"].map((key) => whole(GPUS, name, key));
    return { name, cores, mhz, gbps: bytes / 1000 };
  });
}

/** What package.json says of the setting between its type and its default; empty is the target's own. */
export function setting() {
  const found = [...chips(), ...gpus()].map(({ name }) => name);
  const listed = ["", ...found].map((name) => `            "${name}"`).join(",\n");
  const told = ["own", ...found].map((name) => `            "%setting.chip.${name}%"`).join(",\n");
  return `          "enum": [\n${listed}\n          ],\n          "enumDescriptions": [\n${told}\n          ],\n`;
}

const WORDS = {
  "package.nls.json": {
    own: "The target's own: ascend910b1, or nvidia_h200 for Triton",
    chip: ({ cube, vector, mhz, gbps }) => `${cube} cube cores and ${vector} vector cores at ${mhz} MHz, ${gbps} GB/s`,
    gpu: ({ cores, mhz, gbps }) => `${cores} multiprocessors at ${mhz} MHz, ${gbps} GB/s`,
  },
  "package.nls.zh-cn.json": {
    own: "目标自己的设备：ascend910b1，Triton 则为 nvidia_h200",
    chip: ({ cube, vector, mhz, gbps }) => `${cube} 个 Cube 核，${vector} 个 Vector 核，${mhz} MHz，${gbps} GB/s`,
    gpu: ({ cores, mhz, gbps }) => `${cores} 个流多处理器，${mhz} MHz，${gbps} GB/s`,
  },
};

/** Those words by file and key. */
export function words() {
  return Object.fromEntries(
    Object.entries(WORDS).map(([file, { own, chip, gpu }]) => [
      file,
      Object.fromEntries([
        ["setting.chip.own", own],
        ...chips().map((device) => [`setting.chip.${device.name}`, chip(device)]),
        ...gpus().map((device) => [`setting.chip.${device.name}`, gpu(device)]),
      ]),
    ]),
  );
}

function replaced(text, before, after, anchor) {
  const without = text.replace(before, "");
  return without.replace(anchor, (found) => found + after);
}

if (process.argv[1]?.endsWith("chips.mjs")) {
  const manifest = readFileSync("package.json", "utf8");
  const old = /(?<="evokernel\.chip": \{\n {10}"order": \d+,\n {10}"type": "string",\n) {10}"enum":[^\]]*\],\n {10}"enumDescriptions": \[[^\]]*\],\n/;
  writeFileSync("package.json", replaced(manifest, old, setting(), /"evokernel\.chip": \{\n {10}"order": \d+,\n {10}"type": "string",\n/));
  for (const [file, said] of Object.entries(words())) {
    const lines = Object.entries(said).map(([key, text]) => `  "${key}": "${text}",\n`).join("");
    const text = readFileSync(file, "utf8").replace(/ {2}"setting\.chip\.[^\n]*\n/g, "");
    writeFileSync(file, text.replace(/ {2}"setting\.chip": [^\n]*\n/, (found) => found + lines));
  }
}
