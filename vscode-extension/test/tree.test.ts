import assert from "node:assert/strict";
import { test } from "node:test";
import { readState } from "../src/dashboardState";
import { groupRow, groups, jobRow, kernelRow, offerRow, type JobNode, type KernelNode, type OfferNode } from "../src/tree";

const DASHBOARD = readState({
  status: "shown",
  dashboard: {
    jobs: [
      { id: "1", file: "/ws/model.py", uri: "file:///ws/model.py", line: 7, kind: "generate", state: "running", stage: "verify", attempt: 2, budget: 30, reason: "" },
      { id: "2", file: "/ws/model.py", uri: "file:///ws/model.py", line: 9, kind: "refine", state: "waiting", stage: "", attempt: 0, budget: 30, reason: "no verifier" },
      { id: "3", file: "/ws/model.py", uri: "", line: 0, kind: "refine", state: "done", stage: "", attempt: 9, budget: 30, reason: "" },
    ],
    kernels: [{ uri: "file:///ws/my%20model.py", name: "softmax_1", line: 12, stale: true, why: "Its code changed." }],
    offers: [
      { uri: "file:///ws/model.py", regionId: "r", name: "gelu_1", title: "gelu", words: "gelu: 9 µs", ready: true, wasUs: 27.9, wasSource: "measured", newUs: 9, source: "modelled" },
      { uri: "file:///ws/model.py", regionId: "s", name: "softmax_1", words: "softmax", ready: false, wasUs: 20, wasSource: "measured", newUs: 10, source: "modelled" },
    ],
  },
});

assert.ok(DASHBOARD !== undefined);

const kernel = (name: string): { kernel: KernelNode["kernel"]; folder: string } => ({
  kernel: { name, title: name.replace("_1", ""), latency: undefined, verifier: "twin", gates: [], sources: [] },
  folder: `file:///ws/evokernel_kernels/${name}`,
});

test("what asks for a decision comes first, and empty groups are left out", () => {
  const all = groups(DASHBOARD, [kernel("softmax_1"), kernel("a_1")]);
  assert.deepEqual(all.map(({ group, children }) => [group, children.length]), [["offers", 2], ["jobs", 2], ["kernels", 2]]);
  assert.deepEqual(groups(undefined, []), []);
  assert.equal(groupRow(all[0] ?? assert.fail()).label, "Waiting for your review");
});

test("without a server the packages on the disk are there", () => {
  const [only] = groups(readState({ status: "refused" }), [kernel("b_1"), kernel("a_1")]);
  assert.deepEqual(only?.children.map((node) => node.kind === "kernel" && node.kernel.name), ["a_1", "b_1"]);
});

test("a kernel knows its call, whose address may be escaped otherwise, and says that it is out of date", () => {
  const nodes = groups(DASHBOARD, [kernel("softmax_1"), kernel("a_1")]).at(-1)?.children as KernelNode[];
  const [alone, called] = nodes.map(kernelRow);
  assert.equal(called?.context, "kernel.called");
  assert.equal(called.icon, "warning");
  assert.match(called.description, /out of date$/);
  assert.equal(called.tooltip.at(-1), "Its code changed.");
  assert.deepEqual([alone?.context, alone?.icon, alone?.description], ["kernel", "zap", "no latency"]);
});

test("a kernel of that name in another folder is not the one that is called", () => {
  const elsewhere = { ...kernel("softmax_1"), folder: "file:///other/evokernel_kernels/softmax_1" };
  const [node] = groups({ ...DASHBOARD, jobs: [], offers: [] }, [elsewhere])[0]?.children as KernelNode[];
  assert.equal(node?.call, undefined);
});

test("jobs say their stage and attempts, and why they wait", () => {
  const [running, waiting] = (groups(DASHBOARD, [])[1]?.children as JobNode[]).map(jobRow);
  assert.deepEqual([running?.label, running?.description, running?.context], ["model.py", "verify 2/30", "job.running"]);
  assert.deepEqual([waiting?.description, waiting?.icon, waiting?.tooltip.at(-1)], ["waiting until it can be verified", "clock", "no verifier"]);
});

test("an offer says what is computed, its latency and its gain where the two figures compare", () => {
  const rows = (groups(DASHBOARD, [])[0]?.children as OfferNode[]).map(offerRow);
  assert.deepEqual(rows.map(({ label, description, context }) => [label, description, context]), [
    ["gelu", "9.0 µs estimated · 3.1×", "offer.ready"],
    ["softmax_1", "10.0 µs estimated", "offer.faster"],
  ]);
  assert.deepEqual(rows[0]?.tooltip, ["gelu_1", "ready", "gelu: 9 µs"]);
});

test("an accepted kernel has latency and gain beside what it computes, and its package in the tooltip", () => {
  const { kernel: bare, folder } = kernel("softmax_1");
  const latency = { us: 10, source: "modelled", baselineUs: 25, baselineSource: "measured", rooflineUs: 5, chip: "ascend910b1" };
  const [row] = groups(undefined, [{ kernel: { ...bare, latency }, folder }]).flatMap(({ children }) => (children as KernelNode[]).map(kernelRow));
  assert.deepEqual([row?.label, row?.description, row?.tooltip[0]], ["softmax", "10.0 µs estimated · 2.5×", "softmax_1"]);
});
