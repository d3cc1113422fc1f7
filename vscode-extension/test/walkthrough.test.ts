import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

interface Step {
  readonly id: string;
  readonly description: string;
  readonly media: { readonly svg: string };
  readonly completionEvents: readonly string[];
}

interface Manifest {
  readonly contributes: {
    readonly commands: readonly { readonly command: string }[];
    readonly walkthroughs: readonly { readonly steps: readonly Step[] }[];
  };
}

// `npm test` runs in the extension's folder.
const read = (name: string): string => readFileSync(name, "utf8");
const { contributes } = JSON.parse(read("package.json")) as Manifest;
const ofServer = [...read("../server/evokernel_server/texts/command_names.py").matchAll(/"(evokernel\.\w+)"/g)].map(([, name]) => name);
const commands = new Set([...contributes.commands.map(({ command }) => command), ...ofServer]);
const steps = contributes.walkthroughs.flatMap((walkthrough) => walkthrough.steps);

test("the walkthrough goes from a model to a refined kernel", () => {
  assert.deepEqual(steps.map(({ id }) => id), ["open", "inputs", "generate", "review", "refine"]);
});

for (const { id, media, completionEvents } of steps) {
  test(`step ${id} has its picture, and ends with what a person does`, () => {
    assert.ok(existsSync(media.svg));
    assert.match(read(media.svg), /var\(--vscode-/);
    assert.ok(completionEvents.some((event) => event === "onLanguage:python" || commands.has(event.replace("onCommand:", ""))));
  });
}

for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) {
  test(`the buttons of ${file} run commands that there are`, () => {
    const said = Object.entries(JSON.parse(read(file)) as Record<string, string>).filter(([key]) => key.startsWith("walkthrough."));
    const run = said.flatMap(([, text]) => [...text.matchAll(/\(command:([\w.]+)\)/g)].map(([, name]) => name ?? ""));
    assert.equal(run.length, 4);
    assert.deepEqual(run.filter((name) => !commands.has(name) && !name.startsWith("workbench.action.")), []);
  });
}
