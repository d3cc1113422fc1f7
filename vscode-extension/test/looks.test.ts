import assert from "node:assert/strict";
import { test } from "node:test";
import { install } from "../src/install";
import { LOOKS, lookOf, textOf } from "../src/looks";

test("red is for failures of EvoKernel and of the environment alone", () => {
  const red = Object.entries(LOOKS).filter(([, look]) => look.red);
  assert.deepEqual(
    red.map(([mode]) => mode),
    ["error"],
  );
});

test("missing inputs are said in words, not in red", () => {
  assert.equal(textOf("needs_inputs"), "$(question) EvoKernel: needs inputs");
  assert.equal(textOf("analysing"), "$(sync~spin) EvoKernel");
  assert.equal(textOf("analysing", "regions 12 of 20"), "$(sync~spin) EvoKernel: regions 12 of 20");
});

test("a mode of a newer server does not break the item", () => {
  assert.equal(lookOf("dreaming"), LOOKS.ready);
});

test("no message sends a person to an index that has no package of ours", () => {
  assert.doesNotMatch(install(), /pip install evokernel/);
});
