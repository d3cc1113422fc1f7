import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { commandsWith } from "../src/answers";
import { ANY_KERNEL, Decisions } from "../src/decisions";
import { Reviews } from "../src/reviews";
import { Texts } from "../src/texts";
import { Variants } from "../src/variants";
import { KERNEL, REVIEW, scripted, type Answers, type Scripted } from "./doubles/server";
import { clearDesk, desk, Position, Range, scroll, type Uri } from "./doubles/vscode";

const PLACE = { uri: REVIEW.uri, regionId: REVIEW.regionId };
const PARTS = [
  { regionId: "part1", line: 11, words: "exp" },
  { regionId: "part2", line: 12, words: "sum" },
];
const OFFERS = [
  { ...PLACE, name: "softmax_1", words: "", ready: true },
  { uri: REVIEW.uri, regionId: "other", name: "gelu_1", words: "gelu in mlp", ready: true },
  { uri: REVIEW.uri, regionId: "called", name: "norm_1", words: "faster", ready: false },
  { uri: "file:///ws/else.py", regionId: "far", name: "far_1", words: "", ready: true },
];

beforeEach(clearDesk);

interface Session extends Scripted {
  readonly reviews: Reviews;
  readonly texts: Texts;
  readonly decisions: Decisions;
  readonly variants: Variants;
}

function session(answers: Answers = {}, review: object = REVIEW): Session {
  const server = scripted({
    "evokernel.review": () => ({ status: "shown", message: "", review }),
    "evokernel.apply": () => ({ status: "applied", message: "softmax_1 is in place." }),
    "evokernel.reject": () => ({ status: "rejected", message: "" }),
    "evokernel.snooze": () => ({ status: "snoozed", message: "put off" }),
    "evokernel.never": () => ({ status: "never", message: "no more" }),
    "evokernel.offerAgain": () => ({ status: "offered", message: "" }),
    "evokernel.dashboard": () => ({ status: "shown", dashboard: { offers: OFFERS } }),
    ...answers,
  });
  const texts = new Texts();
  const reviews = new Reviews(texts);
  const decisions = new Decisions(reviews, server.execute);
  return { ...server, reviews, texts, decisions, variants: new Variants(texts, server.execute) };
}

const last = ({ asked }: Scripted): [string, unknown] | undefined => asked.at(-1);

test("a review shows the Python change and its evidence, and tells menus and keys", async () => {
  const { decisions } = session();
  await decisions.review(PLACE);
  const [command, before, after, , options] = desk.ran[0] ?? [];
  assert.equal(command, "vscode.diff");
  assert.match(String(before), /\/model\.py\?before$/);
  assert.equal(String(after), String(before).replace("?before", "?after"));
  const at = new Position(REVIEW.changeLine, 0);
  assert.deepEqual(options, { preview: false, selection: new Range(at, at) });
  assert.match(desk.page, /It reads x once/);
  assert.deepEqual(desk.context, {
    "evokernel.inReview": true,
    "evokernel.canDecide": true,
    "evokernel.changeInView": false,
    "evokernel.reviewHasParts": false,
    "evokernel.reviewHasFiles": true,
  });
});

test("the key that accepts works where the first changed line is on the screen, and another brings it back", async () => {
  const { reviews, decisions } = session();
  await decisions.review(PLACE);
  const after = desk.ran[0]?.[2] as Uri;
  for (const [uri, first, last, seen] of [
    [after, 0, 11, false],
    [after, 4, 40, true],
    [after, 13, 60, false],
    [desk.ran[0]?.[1] as Uri, 4, 40, false],
    [after, 12, 12, true],
  ] as const) {
    scroll(uri, first, last);
    assert.equal(desk.context["evokernel.changeInView"], seen, `${String(uri)} ${first} to ${last}`);
  }
  await reviews.showChange();
  assert.deepEqual(desk.ran.at(-1), desk.ran[0]);
});

test("of a refined kernel a file of it is what is seen", async () => {
  const files = [{ name: "kernel.py", before: "1", after: "2" }];
  const { decisions } = session({}, { ...REVIEW, after: REVIEW.before, files });
  await decisions.review(PLACE);
  scroll(desk.ran[0]?.[2] as Uri, 0, 9);
  assert.equal(desk.context["evokernel.changeInView"], true);
});

test("a kernel that is called already shows its files, not an unchanged Python file", async () => {
  const files = [
    { name: "op_kernel.cpp", before: "// old", after: "// new" },
    { name: "tiling.h", before: "// same", after: "// same" },
  ];
  const { decisions } = session({}, { ...REVIEW, after: REVIEW.before, files });
  await decisions.review(PLACE);
  assert.deepEqual(desk.ran.map(([command]) => command), ["vscode.diff", "vscode.setEditorLayout"]);
  assert.match(String(desk.ran[0]?.[2]), /op_kernel\.cpp\?after$/);
});

test("of the kernel that is installed there is its evidence alone, and nothing to decide", async () => {
  const files = REVIEW.files.map((file) => ({ ...file, before: file.after }));
  const { decisions } = session({}, { ...REVIEW, after: REVIEW.before, installed: REVIEW.kernel, files });
  await decisions.review(PLACE);
  assert.deepEqual(desk.ran, []);
  assert.match(desk.page, /This kernel is accepted/);
  assert.equal(desk.context["evokernel.canDecide"], false);
});

test("several files are compared in one editor", async () => {
  const { decisions } = session({}, { ...REVIEW, after: REVIEW.before });
  await decisions.review(PLACE);
  assert.equal(desk.ran[0]?.[0], "vscode.changes");
  assert.equal(desk.context["evokernel.inReview"], true);
});

test("what was seen is what is accepted, and the review leaves the screen", async () => {
  const it = session();
  await it.decisions.review(PLACE);
  await it.decisions.accept();
  assert.deepEqual(last(it), ["evokernel.apply", { ...PLACE, sourceId: "fast" }]);
  assert.deepEqual(desk.tabs, []);
  assert.equal(desk.context["evokernel.inReview"], false);
  assert.deepEqual(desk.opened, ["/ws/model.py:11"]);
  assert.deepEqual(desk.said, ["EvoKernel: softmax_1 is in place."]);
});

test("after an acceptance the cursor stands on the line of the kernel's call", async () => {
  const after = "from evokernel_kernels import softmax_1\n\nif softmax_1.holds(x):\n    y = softmax_1.run(x)\nelse:\n    y = softmax(x)\n";
  const it = session({}, { ...REVIEW, line: 1, after });
  await it.decisions.review(PLACE);
  await it.decisions.accept();
  assert.deepEqual(desk.opened, ["/ws/model.py:3"]);
});

test("a refused acceptance leaves the review where it is", async () => {
  const it = session({ "evokernel.apply": () => ({ status: "refused", message: "The file changed." }) });
  await it.decisions.review(PLACE);
  await it.decisions.accept();
  assert.equal(desk.tabs.length, 1);
  assert.deepEqual(desk.opened, []);
});

test("a row of the tree is accepted without a review", async () => {
  const it = session();
  await it.decisions.accept({ kind: "offer", offer: OFFERS[1] });
  assert.deepEqual(last(it), ["evokernel.apply", { uri: REVIEW.uri, regionId: "other" }]);
});

for (const [name, ticks, expected] of [
  ["the parts take the whole's place", ["softmax_1", "Only line 12", "Only line 13"], ["part1", "part2"]],
  ["the whole takes the parts' place", ["Only line 12", "softmax_1"], ["whole"]],
  ["others in the file come along", ["softmax_1", "gelu_1"], ["whole", "other"]],
] as const) {
  test(`accept some: ${name}`, async () => {
    const it = session({}, { ...REVIEW, parts: PARTS });
    await it.decisions.review(PLACE);
    desk.choose = (labels) => {
      assert.deepEqual(labels, ["softmax_1", "Only line 12", "Only line 13", "gelu_1"]);
      return [...ticks];
    };
    await it.decisions.acceptSome();
    assert.deepEqual(last(it), ["evokernel.apply", { ...PLACE, regionIds: expected }]);
    assert.deepEqual(desk.tabs, []);
  });
}

test("accept some: Escape accepts nothing", async () => {
  const it = session({}, { ...REVIEW, parts: PARTS });
  await it.decisions.review(PLACE);
  await it.decisions.acceptSome();
  assert.equal(last(it)?.[0], "evokernel.dashboard");
});

for (const [label, typed, reason] of [
  ["Slower than wanted", "", "slower than wanted"],
  ["Hard to read", "", "hard to read"],
  ["Another reason…", " too long ", "too long"],
  ["Another reason…", "", "other"],
] as const) {
  test(`reject: ${label} ${typed}`, async () => {
    const it = session();
    await it.decisions.review(PLACE);
    desk.choose = () => [label];
    desk.type = typed;
    await it.decisions.reject();
    assert.deepEqual(last(it), ["evokernel.reject", { ...PLACE, reason }]);
    assert.deepEqual(desk.tabs, []);
  });
}

test("reject: Escape rejects nothing", async () => {
  const it = session();
  await it.decisions.review(PLACE);
  await it.decisions.reject();
  desk.choose = () => ["Another reason…"];
  desk.type = undefined;
  await it.decisions.reject();
  assert.deepEqual(it.asked.map(([command]) => command), ["evokernel.review"]);
});

test("snooze and never end the review, which the status bar says", async () => {
  const it = session();
  await it.decisions.review(PLACE);
  await it.decisions.snooze();
  assert.deepEqual(last(it), ["evokernel.snooze", PLACE]);
  assert.deepEqual(desk.tabs, []);
  await it.decisions.neverHere(PLACE);
  assert.deepEqual(last(it), ["evokernel.never", PLACE]);
  assert.deepEqual([desk.said, desk.toasts], [["EvoKernel: put off", "EvoKernel: no more"], []]);
});

test("a review of the same place takes the older one's place", async () => {
  const it = session();
  await it.decisions.review(PLACE);
  await it.decisions.review(PLACE);
  assert.equal(desk.tabs.length, 1);
});

test("an action of the server that rejects asks for the reason first", async () => {
  const it = session();
  const commands = commandsWith(it.decisions, it.variants);
  desk.choose = () => ["Precision"];
  assert.deepEqual(await commands.before("evokernel.reject", [PLACE]), [{ ...PLACE, reason: "precision" }]);
  desk.choose = () => undefined;
  assert.equal(await commands.before("evokernel.reject", [PLACE]), undefined);
  assert.deepEqual(await commands.before("evokernel.apply", [PLACE]), [PLACE]);
});

test("an action of the server that asks for a review shows it", async () => {
  const it = session();
  commandsWith(it.decisions, it.variants).after("evokernel.review", [PLACE], { status: "shown", review: REVIEW });
  await new Promise(setImmediate);
  assert.equal(desk.ran[0]?.[0], "vscode.diff");
});

for (const [button, command] of [
  ["Review", "evokernel.review"],
  ["Accept", "evokernel.apply"],
  ["", undefined],
] as const) {
  test(`a kernel that is ready is told once; ${button || "Escape"} asks for ${command ?? "nothing"}`, async () => {
    const it = session();
    desk.choose = () => [button];
    const answer = { status: "ready", message: "softmax_1 is ready.", ...PLACE };
    commandsWith(it.decisions, it.variants).after("evokernel.generate", [PLACE], answer);
    await new Promise(setImmediate);
    assert.equal(desk.said[0], "EvoKernel: softmax_1 is ready.");
    assert.equal(last(it)?.[0], command);
  });
}

test("a kernel in a target that nobody chose makes it the workspace's", async () => {
  const it = session();
  const commands = commandsWith(it.decisions, it.variants);
  const answer = { status: "ready", message: "softmax_1 is ready.", target: "triton", regionId: "another" };
  for (const refused of [{ status: "refused", message: "no" }, undefined]) commands.after("evokernel.generateIn", [PLACE], refused);
  await new Promise(setImmediate);
  assert.equal(desk.ran.length, 0);
  commands.after("evokernel.generateIn", [PLACE], answer);
  await new Promise(setImmediate);
  assert.deepEqual(desk.ran[0], ["update", "evokernel.target", "triton", 2]);
  assert.equal(desk.said.at(-1), "EvoKernel: softmax_1 is ready.");
  commands.after("evokernel.generateIn", [PLACE], answer);
  await new Promise(setImmediate);
  assert.equal(desk.ran.filter(([name]) => name === "update").length, 1);
});

test("a variant is compared file by file with the accepted kernel, and no file looks renamed", async () => {
  const files = [
    { name: "kernel.py", before: "1", after: "2" },
    { name: "tiling.h", before: "1", after: "1" },
  ];
  const { variants, asked } = session({ "evokernel.compare": () => ({ status: "shown", files }) });
  variants.show(PLACE, { variants: [{ ...KERNEL, sourceId: "old", us: 50, installed: true }, KERNEL] });
  assert.match(desk.page, /<table class="ruled">/);
  await variants.compare({ ...PLACE, sourceId: "fast", other: "old" });
  assert.deepEqual(asked, [["evokernel.compare", { ...PLACE, sourceId: "old", other: "fast" }]]);
  const [command, before, after, title] = desk.ran[0] ?? [];
  assert.deepEqual([command, title], ["vscode.diff", "50.0 µs estimated ↔ 35.2 µs estimated (kernel.py)"]);
  assert.equal((before as Uri).path, (after as Uri).path);
});

test("a review that is open follows the file, and says where it holds no more", async () => {
  let answer: object = { status: "shown", message: "", review: REVIEW };
  const { decisions, texts, asked } = session({ "evokernel.review": () => answer });
  await decisions.review(PLACE);
  const after = desk.ran[0]?.[2] as Uri;
  const told: string[] = [];
  texts.onDidChange((uri) => told.push(uri.toString()));
  desk.page = "";
  await decisions.follow();
  assert.deepEqual(asked.at(-1), ["evokernel.review", { ...PLACE, sourceId: "fast", again: true }]);
  assert.deepEqual([told, desk.page], [[], ""], "nothing has changed");

  answer = { status: "shown", message: "", review: { ...REVIEW, after: "moved\n", why: ["It reads y."] } };
  await decisions.follow();
  assert.deepEqual(told, [String(after)]);
  assert.equal(texts.provideTextDocumentContent(after as never), "moved\n");
  assert.match(desk.page, /It reads y/);

  answer = { status: "stale", message: "Another window decided." };
  await decisions.follow();
  assert.match(desk.page, /role="alert">This review is out of date\. Another window decided\.</);
  assert.doesNotMatch(desk.page, /command:evokernel\.acceptKernel/);
  assert.equal(desk.context["evokernel.canDecide"], false);

  answer = { status: "shown", message: "", review: REVIEW };
  await decisions.follow();
  assert.match(desk.page, /command:evokernel\.acceptKernel/);
  assert.equal(desk.context["evokernel.canDecide"], true);
});

test("what a server refuses shows nothing", async () => {
  const it = session({ "evokernel.review": () => ({ status: "refused", message: "gone" }) });
  await it.decisions.review(PLACE);
  assert.deepEqual(desk.ran, []);
});

test("a command about the line of the cursor says so where that line has no kernel", async () => {
  const { decisions, asked } = session();
  await decisions.accept();
  await decisions.reject();
  await decisions.forKernel("evokernel.revert");
  await decisions.placeFor(undefined, ANY_KERNEL);
  assert.equal(desk.said.length, 4);
  assert.match(desk.said[0] ?? "", /no kernel is pending on this line/);
  assert.match(desk.said[2] ?? "", /no generated kernel is called on this line/);
  assert.match(desk.said[3] ?? "", /line with a ⚡ hint/);
  assert.deepEqual(asked, []);
});
