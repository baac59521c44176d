// Build the front end into the folder that the server serves. `node build.mjs --watch` builds again after each change.
import { cp, rm } from "node:fs/promises";
import { build, context } from "esbuild";

const target = "../src/allranks_studio/static";
const options = {
  entryPoints: { studio: "src/main.tsx" },
  outdir: target,
  bundle: true,
  splitting: true, // the designer and the editor are loaded when they are opened
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  minify: true,
  legalComments: "linked",
  chunkNames: "chunks/[name]-[hash]",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
};

await rm(target, { recursive: true, force: true });
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
}
await cp("src/index.html", `${target}/index.html`);
