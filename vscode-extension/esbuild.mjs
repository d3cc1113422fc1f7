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

const tests = {
  ...common,
  entryPoints: readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
  outdir: "out/test",
  sourcemap: "inline",
};

if (flags.has("--watch")) {
  await (await esbuild.context(extension)).watch();
} else {
  rmSync(flags.has("--tests") ? "out/test" : "out", { recursive: true, force: true });
  await esbuild.build(flags.has("--tests") ? tests : extension);
}
