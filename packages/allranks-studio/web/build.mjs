// Build the front end into the folder that the server serves. `node build.mjs --watch` builds again after each change.
import { cp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { build, context } from "esbuild";

const target = "../src/allranks_studio/static";
const options = {
  // A stylesheet of its own: esbuild does not load those of modules that are imported later.
  entryPoints: { studio: "src/main.tsx", designer: "src/designer/designer.css" },
  outdir: target,
  bundle: true,
  splitting: true, // the designer and the editor are loaded when they are opened
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  minify: true,
  legalComments: "none", // LICENSES.txt has them
  metafile: true,
  chunkNames: "chunks/[name]-[hash]",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
};

// The licence of each package whose code is in the bundle, as these licences ask for.
async function licenses(metafile) {
  const files = Object.keys(metafile.inputs).map((file) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  const texts = [...new Set(files)].filter(Boolean).map(async (folder) => {
    const name = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!name) throw new Error(`${folder} has no licence`);
    return `${folder.replace("node_modules/", "")}\n\n${await readFile(`${folder}/${name}`, "utf8")}`;
  });
  return (await Promise.all(texts)).sort().join(`\n${"-".repeat(80)}\n\n`);
}

await rm(target, { recursive: true, force: true });
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  const { metafile } = await build(options);
  await writeFile(`${target}/LICENSES.txt`, await licenses(metafile));
}
await cp("src/index.html", `${target}/index.html`); // last: with it, the build is complete
