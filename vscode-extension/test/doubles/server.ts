/** A server that answers as the contract of its commands says, and notes what it was asked. */
import type { Execute } from "../../src/decisions";

const URI = "file:///ws/model.py";

export const KERNEL = {
  sourceId: "fast",
  strategy: ["Rows stay in the unified buffer."],
  us: 35.2,
  source: "modelled",
  chip: "ascend910b1",
  baselineUs: 412.4,
  boundUs: 31,
  bottleneck: "MTE2",
  pipes: { V: 0.41, MTE2: 0.93 },
  verifier: "twin 0.1.0",
  gates: [{ name: "correctness", status: "passed", detail: "30 cases" }],
  inputs: [{ name: "x", dtype: "float32", shape: [512, 32000] }],
  error: { abs: 1e-6, rel: 2e-7 },
};

export const REVIEW = {
  uri: URI,
  file: "/ws/model.py",
  regionId: "whole",
  name: "softmax_1",
  title: "softmax in forward",
  line: 11,
  changeLine: 12,
  version: 3,
  before: "y = softmax(x)\n",
  after: "y = softmax_1.run(x) if guard(x) else softmax(x)\n",
  guards: [
    { name: "x", condition: "is float32 of 512 x 32000." },
    { name: "", condition: "All tensors are on one NPU." },
  ],
  why: ["It reads x once instead of three times."],
  kernel: KERNEL,
  installed: null as unknown,
  vendor: null as unknown,
  files: [
    { name: "op_kernel.cpp", before: "", after: "// kernel" },
    { name: "tiling.h", before: "", after: "// tiling" },
  ],
  parts: [] as unknown[],
};

export type Answers = Record<string, (given: never) => unknown>;

export interface Scripted {
  readonly asked: [string, unknown][];
  readonly execute: Execute;
}

export function scripted(answers: Answers): Scripted {
  const asked: [string, unknown][] = [];
  return {
    asked,
    execute: (command, given) => {
      asked.push([command, given]);
      const answer = answers[command];
      if (answer === undefined) throw new Error(`The script has no answer to ${command}.`);
      return Promise.resolve(answer(given as never));
    },
  };
}
