import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { inEnglish } from "../src/l10n";

// The bundle of this test lies in out/test/, below the extension's folder.
const ROOT = `${__dirname}/../..`;
type Words = Readonly<Record<string, string>>;

const read = (name: string): string => readFileSync(`${ROOT}/${name}`, "utf8");
const words = (name: string): Words => JSON.parse(read(name)) as Words;
const SOURCES = readdirSync(`${ROOT}/src`).map((name) => [name, read(`src/${name}`)] as const);
const holes = (text: string): string[] => [...text.matchAll(/\{\d+\}/g)].map(([hole]) => hole).sort();

const manifest = read("package.json");
const english = words("package.nls.json");
const chinese = words("package.nls.zh-cn.json");
const bundle = words("l10n/bundle.l10n.zh-cn.json");
const said = new Set(
  SOURCES.flatMap(([, text]) =>
    [...text.matchAll(/\bt\(\s*("(?:[^"\\]|\\.)*")/g)].map(([, literal]) => JSON.parse(literal ?? "") as string),
  ),
);

test("the manifest's words are in English and in Chinese, and none is left over", () => {
  const used = [...new Set([...manifest.matchAll(/"%([\w.]+)%"/g)].map(([, key]) => key))].sort();
  assert.deepEqual(Object.keys(english).sort(), used);
  assert.deepEqual(Object.keys(chinese).sort(), used);
});

test("no words for a person stand in the manifest itself", () => {
  const worded = [...manifest.matchAll(/"(?:title|markdownDescription|contents|description|name)": "([^%"]+)"/g)];
  assert.deepEqual(worded.map(([, text]) => text).filter((text) => text !== "EvoKernel" && text !== "evokernel"), []);
});

test("what the extension says has a Chinese translation, and none is left over", () => {
  assert.ok(said.size > 20);
  assert.deepEqual(Object.keys(bundle).sort(), [...said].sort());
});

for (const [name, translations] of [["manifest", chinese], ["bundle", bundle]] as const) {
  test(`translations of the ${name} are Chinese and keep what is filled in`, () => {
    for (const [key, text] of Object.entries(translations)) {
      assert.match(text, /[\u4e00-\u9fff]/, key);
      if (name === "bundle") assert.deepEqual(holes(text), holes(key), key);
    }
  });
}

for (const [name, text] of SOURCES) {
  test(`${name} shows no message, title or question that is not translated`, () => {
    const bare = /(?:show(?:Information|Warning|Error)Message|setStatusBarMessage)\(\s*["`](?!EvoKernel: \$\{)|(?:placeHolder|placeholder|title|prompt|tooltip): ["`](?!EvoKernel(?:"|: \$\{))(?=[A-Z])/g;
    assert.deepEqual([...text.matchAll(bare)].map(([match]) => match), []);
  });
}

test("English is filled in", () => {
  assert.equal(inEnglish("{0} of {1}, {0}", 1, "two"), "1 of two, 1");
  assert.equal(inEnglish("{0}"), "{0}");
});
