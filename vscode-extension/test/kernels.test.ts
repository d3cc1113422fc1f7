import assert from "node:assert/strict";
import { test } from "node:test";
import { digits, evidence, gain, isPackageName, isReadable, latencyLine, readManifest } from "../src/kernels";

const MANIFEST = JSON.stringify({
  verdict: {
    verifier: "twin 0.1.0",
    gates: [
      { gate: "compile", status: "passed" },
      { gate: "latency", status: "passed" },
    ],
    latency: { us: 35.21, baseline_us: 412.4, roofline_us: 31, source: "modelled", chip: "ascend910b1" },
  },
});

test("a manifest gives its evidence", () => {
  const kernel = readManifest("softmax_1", MANIFEST);
  assert.ok(kernel !== undefined);
  assert.deepEqual(evidence(kernel), [
    "35.2 µs estimated",
    "eager 412 µs estimated",
    "roofline limit 31.0 µs estimated",
    "chip ascend910b1",
    "verifier twin 0.1.0",
    "compile passed, latency passed",
  ]);
});

for (const text of ["", "{", "[]", "null", "{}", '{"verdict": []}']) {
  test(`${JSON.stringify(text)} is no manifest`, () => {
    assert.equal(readManifest("x", text), undefined);
  });
}

for (const [title, shown] of [
  ["rms_norm", "rms_norm"],
  ["Block.forward", "Block.forward"],
  ["[x](command:evil)", "x_1f"],
  ["a..b", "x_1f"],
  [3, "x_1f"],
  [undefined, "x_1f"],
] as const) {
  test(`a kernel that computes ${JSON.stringify(title)} is called ${shown}`, () => {
    assert.equal(readManifest("x_1f", JSON.stringify({ title, verdict: {} }))?.title, shown);
  });
}

for (const [before, now, isEager, words] of [
  ["modelled", "modelled", false, "4.0×"],
  ["measured", "modelled", true, "4.0×"],
  ["measured", "modelled", false, ""],
  ["modelled", "measured", true, ""],
] as const) {
  test(`a gain from ${before} to ${now}, ${isEager ? "over eager" : "over a kernel"}`, () => {
    assert.equal(gain({ us: 40, source: before }, { us: 10, source: now }, isEager), words);
  });
}

test("no figure is made up where there is none", () => {
  const kernel = readManifest("x", '{"verdict": {"gates": "none", "latency": null}}');
  assert.ok(kernel !== undefined);
  assert.equal(latencyLine(kernel), "no latency");
  assert.deepEqual(evidence(kernel), ["no latency"]);
});

for (const [sources, names] of [
  [undefined, ["tiling.h", "op_kernel.cpp"]],
  [["kernel.py"], ["kernel.py"]],
  [["../x", "a/b", "", ".ssh", 3, "a.h"], ["a.h"]],
  ["kernel.py", []],
] as const) {
  test(`the files of a kernel, named as ${JSON.stringify(sources)}`, () => {
    const kernel = readManifest("x", JSON.stringify({ sources, verdict: {} }));
    assert.deepEqual(kernel?.sources, names);
  });
}

test("digits", () => {
  assert.deepEqual([26093.4, 412.4, 100, 35.21, 1, 0.125].map(digits), ["26,093", "412", "100", "35.2", "1.0", "0.13"]);
});

const FOLDERS = ["[x](command:workbench.action.terminal.new)", "![x](https:&#47;&#47;evil.example)", "**x", "$(x)", "", "a b", "x\n"];

for (const name of FOLDERS) {
  test(`a folder called ${JSON.stringify(name)} is no package, whose name would be markup`, () => {
    assert.equal(isPackageName(name), false);
    assert.equal(readManifest(name, MANIFEST), undefined);
  });
}

test("a pipe, a device, a link and gigabytes are not read as a manifest", () => {
  const [unknown, file, folder, link] = [0, 1, 2, 64];
  assert.equal(isReadable({ type: file, size: 900 }), true);
  for (const type of [unknown, folder, link, file | link]) assert.equal(isReadable({ type, size: 900 }), false);
  assert.equal(isReadable({ type: file, size: 2 ** 32 }), false);
});
