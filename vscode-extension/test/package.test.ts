import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const LARGEST_BUNDLE = 700_000;

interface Manifest {
  activationEvents: string[];
  contributes: {
    keybindings: { command: string; key: string; when: string }[];
    commands: { command: string; icon?: string }[];
    menus: { "editor/title": { command: string; group: string }[] };
  };
  icon: string;
  license: string;
  main: string;
  categories: string[];
  keywords: string[];
  repository?: unknown;
  homepage?: unknown;
  bugs?: unknown;
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
let folder = "";
let bundle = "";

before(() => {
  folder = mkdtempSync(join(tmpdir(), "evokernel-vsix-"));
  // elsewhere than out/, which a build empties and where this test lies
  const env = { ...process.env, EVOKERNEL_BUNDLE_FOLDER: folder };
  execFileSync(process.execPath, ["esbuild.mjs", "--production"], { env });
  bundle = readFileSync(join(folder, "extension.js"), "utf8");
});

after(() => {
  rmSync(folder, { recursive: true, force: true });
});

test("the bundle is small, and so starts quickly", () => {
  assert.ok(statSync(join(folder, "extension.js")).size < LARGEST_BUNDLE);
});

test("the bundle speaks to no network: it has neither a client of HTTP nor sockets of its own", () => {
  const modules = new Set([...bundle.matchAll(/require\("(?:node:)?([^"]+)"\)/g)].map((match) => match[1]));
  for (const name of ["http", "https", "http2", "dgram", "dns", "tls", "inspector"]) {
    assert.ok(!modules.has(name), `it loads ${name}`);
  }
  assert.doesNotMatch(bundle, /\b(?:fetch|XMLHttpRequest|WebSocket|EventSource)\(/);
  assert.doesNotMatch(bundle, /\beval\(|new Function\(/);
});

test("nothing but a Python file wakes it, or its own dashboard after a reload", () => {
  assert.deepEqual(manifest.activationEvents, ["onLanguage:python", "onWebviewPanel:evokernel.dashboard"]);
});

test("it says of every package in it under what licence it came", () => {
  const notices = readFileSync(join(folder, "NOTICES.txt"), "utf8");
  for (const name of ["vscode-languageclient", "vscode-jsonrpc", "vscode-languageserver-protocol", "semver"]) {
    assert.match(notices, new RegExp(`\n${name} \\d`));
  }
});

test("a marketplace finds its icon, licence and kind, and no address that does not exist", () => {
  const icon = readFileSync(manifest.icon);
  assert.equal(icon.toString("latin1", 1, 4), "PNG");
  assert.ok(icon.readUInt32BE(16) >= 128 && icon.readUInt32BE(20) >= 128);
  assert.equal(manifest.license, "Apache-2.0");
  assert.ok(manifest.keywords.length <= 30 && manifest.categories.length > 0);
  for (const address of [manifest.repository, manifest.homepage, manifest.bugs]) assert.equal(address, undefined);
});

test("what stands in a title bar has one of the editor's own icons", () => {
  const { commands, menus } = manifest.contributes;
  const icons = new Map(commands.map(({ command, icon }) => [command, icon]));
  const shown = menus["editor/title"].filter(({ group }) => group.startsWith("navigation"));
  assert.ok(shown.length > 3);
  for (const { command } of shown) assert.match(icons.get(command) ?? "", /^\$\([a-z-]+\)$/, command);
});

test("one key accepts where the changed lines are seen alone, and brings them there otherwise", () => {
  const pressed = manifest.contributes.keybindings.filter(({ key }) => key === "ctrl+enter");
  assert.deepEqual(pressed.map(({ command, when }) => [command, /(!?)evokernel\.changeInView/.exec(when)?.[1]]), [
    ["evokernel.acceptKernel", ""],
    ["evokernel.showChange", "!"],
  ]);
});

test("keys that decide about a kernel are those of the review alone: not of a commit message, a search or a terminal", () => {
  const keys = manifest.contributes.keybindings.filter(({ when }) => when.includes("evokernel.canDecide"));
  assert.equal(keys.length, 4);
  for (const { when } of keys) {
    for (const elsewhere of ["inQuickOpen", "sideBarFocus", "panelFocus", "auxiliaryBarFocus", "terminalFocus"]) {
      assert.ok(when.includes(`!${elsewhere}`), `${when} leaves out ${elsewhere}`);
    }
    assert.ok(when.includes("(editorTextFocus || !inputFocus)"), "the find box of the review has keys of its own");
  }
});
