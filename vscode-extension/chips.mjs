// The setting evokernel.chip lists the chips of evokernel_core/hardware/ascend/chips: `node chips.mjs` writes it anew.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const CHIPS = "../evokernel_core/hardware/ascend/chips";

/** A whole number of a chip's file, or else of the one that it is based on. */
function whole(name, key) {
  const text = readFileSync(`${CHIPS}/${name}.toml`, "utf8");
  const found = new RegExp(`^${key} *= *(\\d+)`, "m").exec(text)?.[1];
  const base = /^base *= *"(\w+)"/m.exec(text)?.[1];
  return found === undefined && base !== undefined ? whole(base, key) : Number(found);
}

/** Name, cores, clock and memory bandwidth of each chip, sorted by name. */
export function chips() {
  return readdirSync(CHIPS)
    .filter((file) => file.endsWith(".toml"))
    .sort()
    .map((file) => {
      const name = file.replace(/\.toml$/, "");
      const [cube, vector, mhz, gbps] = ["aic", "aiv", "mhz", "hbm_gbps"].map((key) => whole(name, key));
      return { name, cube, vector, mhz, gbps };
    });
}

/** What package.json says of the setting between its type and its default. */
export function setting() {
  const found = chips();
  const names = found.map(({ name }) => `"${name}"`).join(", ");
  const told = found.map(({ name }) => `            "%setting.chip.${name}%"`).join(",\n");
  return `          "enum": [${names}],\n          "enumDescriptions": [\n${told}\n          ],\n`;
}

const WORDS = {
  "package.nls.json": ({ cube, vector, mhz, gbps }) =>
    `${cube} cube cores and ${vector} vector cores at ${mhz} MHz, ${gbps} GB/s`,
  "package.nls.zh-cn.json": ({ cube, vector, mhz, gbps }) =>
    `${cube} 个 Cube 核，${vector} 个 Vector 核，${mhz} MHz，${gbps} GB/s`,
};

/** Those words by file and key. */
export function words() {
  return Object.fromEntries(
    Object.entries(WORDS).map(([file, say]) => [
      file,
      Object.fromEntries(chips().map((chip) => [`setting.chip.${chip.name}`, say(chip)])),
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
