// Bundles the extension (for Node), the chat (for the webview) and, with --tests, what `node --test` runs.
import { build, context } from "esbuild";
import { readdir } from "node:fs/promises";

const isWatching = process.argv.includes("--watch");
const forTests = process.argv.includes("--tests");

const common = { bundle: true, minify: !isWatching && !forTests, sourcemap: isWatching, logLevel: "warning" };

const extension = {
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["vscode"],
  // The ES modules of the language client's own dependencies, which a bundle can take apart.
  mainFields: ["module", "main"],
  // The client library is taken from its source beside this folder; what that needs is installed here.
  nodePaths: ["node_modules"],
};

const chat = {
  ...common,
  entryPoints: ["src/webview/chat.ts", "src/webview/chat.css"],
  outdir: "dist",
  platform: "browser",
  target: "chrome128",
  format: "iife",
};

const tests = async () => ({
  ...common,
  entryPoints: (await readdir("test")).filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
  outdir: "dist/test",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  target: "node20",
  format: "esm",
  packages: "external",
});

if (isWatching) {
  for (const each of [extension, chat]) await (await context(each)).watch();
} else {
  await Promise.all((forTests ? [await tests()] : [extension, chat]).map((each) => build(each)));
}
