// Bundles the extension into out/extension.js and, with --tests, each test into out/test/.
import { readdirSync, rmSync } from "node:fs";
import * as esbuild from "esbuild";

const flags = new Set(process.argv.slice(2));
const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

const extension = {
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  external: ["vscode"],
  minify: flags.has("--production"),
  sourcemap: !flags.has("--production"),
};

/** What runs in the dashboard's webview. */
const dashboard = {
  ...common,
  platform: "browser",
  target: "es2022",
  format: "iife",
  entryPoints: ["src/dashboardView.ts"],
  outfile: "out/dashboard.js",
  minify: flags.has("--production"),
};

const tests = {
  ...common,
  entryPoints: readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
  outdir: "out/test",
  // Tests run without an editor.
  alias: { vscode: "./test/doubles/vscode.ts" },
  sourcemap: "inline",
};

if (flags.has("--watch")) {
  for (const bundle of [extension, dashboard]) await (await esbuild.context(bundle)).watch();
} else {
  rmSync(flags.has("--tests") ? "out/test" : "out", { recursive: true, force: true });
  for (const bundle of flags.has("--tests") ? [tests] : [extension, dashboard]) await esbuild.build(bundle);
}
