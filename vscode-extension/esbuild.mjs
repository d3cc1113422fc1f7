// Bundles the extension into out/extension.js and, with --tests, each test into out/test/. Beside the extension,
// out/NOTICES.txt has the licence of every package that is in the bundle.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as esbuild from "esbuild";

const flags = new Set(process.argv.slice(2));
const out = process.env.EVOKERNEL_BUNDLE_FOLDER ?? "out";
const common = { bundle: true, platform: "node", target: "node20", format: "cjs", logLevel: "warning" };

const extension = {
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: `${out}/extension.js`,
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
  outfile: `${out}/dashboard.js`,
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
  const isTest = flags.has("--tests");
  rmSync(isTest ? "out/test" : out, { recursive: true, force: true });
  const inputs = [];
  for (const bundle of isTest ? [tests] : [extension, dashboard]) {
    const built = await esbuild.build({ ...bundle, metafile: true });
    inputs.push(...Object.keys(built.metafile.inputs));
  }
  if (!isTest) writeFileSync(`${out}/NOTICES.txt`, notices(inputs));
}

/** Name, version and licence of each package that a file of the bundles came from. */
function notices(files) {
  const folders = files.map((file) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]).filter(Boolean);
  const parts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((entry) => /^(licen[sc]e|copying)/i.test(entry));
    if (file === undefined) throw new Error(`${name} brings no licence`);
    return `\n${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n`;
  });
  return `The files extension.js and dashboard.js hold code of these packages.\n${parts.join("\n")}`;
}
