// build.mjs SOURCE_DIR BUILD_DIR OPENAPI QUESTIONS: generates the types of the API, adds those of the
// questions, type-checks the sources and bundles them into BUILD_DIR/dist. Node finds packages beside the importing file. To keep installed
// packages out of the sources, it builds a copy in BUILD_DIR.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { typesOf } from "./api_types.mjs";

const [sourceDir, buildDir, description, questionTypes] = process.argv.slice(2);
const require = createRequire(path.join(buildDir, "package.json"));
const copy = path.join(buildDir, "src");
const dist = path.join(buildDir, "dist");

rmSync(copy, { recursive: true, force: true });
rmSync(dist, { recursive: true, force: true });
cpSync(path.join(sourceDir, "src"), copy, { recursive: true });
cpSync(path.join(sourceDir, "tsconfig.json"), path.join(buildDir, "tsconfig.json"));
mkdirSync(dist);
writeFileSync(path.join(copy, "api_types.ts"), typesOf(description));
cpSync(questionTypes, path.join(copy, "questions.ts"));

const compiler = path.join(path.dirname(require.resolve("typescript/package.json")), "bin", "tsc");
const check = spawnSync(process.execPath, [compiler, "--noEmit", "-p", buildDir], {
    stdio: "inherit",
});
if (check.status !== 0) {
    process.exit(check.status ?? 1);
}

const esbuild = require("esbuild");
const outputs = [];
const imported = {}; // by script: the scripts that it imports
const entries = {}; // by page that is loaded lazily: its script

async function bundle(names, options) {
    const result = await esbuild.build({
        entryPoints: names.map((name) => path.join(copy, name)),
        absWorkingDir: buildDir,
        outdir: dist,
        bundle: true,
        minify: true,
        target: ["es2022"],
        jsx: "automatic",
        jsxImportSource: "preact",
        entryNames: "assets/[name].[hash]",
        metafile: true,
        legalComments: "eof",
        logLevel: "warning",
        ...options,
    });
    outputs.push(...Object.keys(result.metafile.outputs).map((name) => path.basename(name)));
    for (const [name, { imports, entryPoint }] of Object.entries(result.metafile.outputs)) {
        const needed = imports.filter((part) => part.kind === "import-statement");
        imported[path.basename(name)] = needed.map((part) => path.basename(part.path));
        if (entryPoint?.includes("/pages/")) {
            entries[path.basename(entryPoint, ".tsx")] = path.basename(name);
        }
    }
}

const nameOf = (start, end) => {
    const found = outputs.find((name) => name.startsWith(start) && name.endsWith(end));
    if (!found) {
        throw new Error(`no output ${start}*${end}`);
    }
    return `/assets/${found}`;
};

await bundle(["events_worker.ts", "first_paint.ts"], { format: "iife" });
await bundle(["app.tsx", "theme.css"], {
    format: "esm",
    splitting: true,
    chunkNames: "assets/chunk-[name].[hash]",
    define: { EVENTS_WORKER: JSON.stringify(nameOf("events_worker.", ".js")) },
});
// Returns all scripts that a script needs. The page lists them, so that the browser loads them at once.
function neededBy(name, needed = new Set()) {
    imported[name]?.forEach((part) => needed.has(part) || (needed.add(part), neededBy(part, needed)));
    return needed;
}
const needed = neededBy(path.basename(nameOf("app.", ".js")));
const preloads = [...needed].map((name) => `<link rel="modulepreload" href="/assets/${name}">`).join("\n");
// first_paint.ts preloads the scripts of the page in the address.
const ofPages = Object.fromEntries(
    Object.entries(entries).map(([page, name]) => [page, [name, ...neededBy(name)].filter((part) => !needed.has(part))]),
);
const page = readFileSync(path.join(copy, "index.html"), "utf8")
    .replace("{{first}}", nameOf("first_paint.", ".js"))
    .replace("{{scripts}}", JSON.stringify(ofPages))
    .replace("{{script}}", nameOf("app.", ".js"))
    .replace("{{preloads}}", preloads)
    .replace("{{style}}", nameOf("theme.", ".css"));
writeFileSync(path.join(dist, "index.html"), page);

// Bundles the page that a session is saved as. It contains everything, and its policy runs only this script.
async function bundleText(name) {
    const { outputFiles } = await esbuild.build({
        entryPoints: [path.join(copy, name)],
        absWorkingDir: buildDir,
        bundle: true,
        minify: true,
        write: false,
        target: ["es2022"],
        format: "iife",
        jsx: "automatic",
        jsxImportSource: "preact",
        logLevel: "warning",
        define: { EVENTS_WORKER: JSON.stringify("") },
    });
    return outputFiles[0].text.trim();
}
const script = (await bundleText("one_file.tsx")).replaceAll("</script", "<\\/script");
const hash = createHash("sha256").update(script).digest("base64");
const style = await bundleText("theme.css");
const parts = { script, hash, style };
writeFileSync(
    path.join(dist, "one_file.html"),
    readFileSync(path.join(copy, "one_file.html"), "utf8").replace(/{{(script|hash|style)}}/g, (_, part) => parts[part]),
);
// Writes the SQL questions of that page for the program. Their modules read browser objects when they
// are loaded, so stubs stand in for these.
const questions = path.join(buildDir, "one_file_questions.mjs");
await esbuild.build({
    entryPoints: [path.join(copy, "one_file_questions.ts")],
    absWorkingDir: buildDir,
    bundle: true,
    outfile: questions,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
    define: { EVENTS_WORKER: JSON.stringify("") },
});
Object.assign(globalThis, {
    location: { pathname: "/", search: "" },
    localStorage: { getItem: () => null },
    addEventListener: () => undefined,
    matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
});
const { questionsOfAll } = await import(pathToFileURL(questions).href);
writeFileSync(path.join(dist, "one_file.json"), JSON.stringify(questionsOfAll()));
cpSync(path.join(copy, "favicon.svg"), path.join(dist, "favicon.svg"));
