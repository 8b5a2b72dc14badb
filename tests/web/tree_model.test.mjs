// Tests the model of the call tree on made-up paths: which paths are loaded, their order, and how
// many more there are. It needs neither a browser nor a server.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(path.join(process.env.SJ_WEB_PACKAGES, "package.json"));
const MANY = 250;

let TreeModel;

before(async () => {
    const outfile = path.join(process.env.SJ_WEB_OUTPUT, "tree_model.mjs");
    mkdirSync(process.env.SJ_WEB_OUTPUT, { recursive: true });
    await require("esbuild").build({
        entryPoints: [fileURLToPath(new URL("../../web-static/src/pages/tree_model.ts", import.meta.url))],
        bundle: true,
        format: "esm",
        outfile,
        plugins: [
            {
                name: "no server",
                setup(build) {
                    build.onResolve({ filter: /\/api$/ }, () => ({ path: "api", namespace: "none" }));
                    build.onLoad({ filter: /.*/, namespace: "none" }, () => ({ contents: "export const api = {};" }));
                },
            },
        ],
    });
    ({ TreeModel } = await import(pathToFileURL(outfile).href));
});

const node = (id, child_count) => ({ id, child_count });

// A root with many children, of which the first has one child. `asked` collects the requests.
function makeSource() {
    const children = new Map([
        ["", [node("1", MANY)]],
        ["1", Array.from({ length: MANY }, (_, index) => node(`1${index}`, index === 0 ? 1 : 0))],
        ["10", [node("leaf", 0)]],
    ]);
    const asked = [];
    const pages = async (question) => {
        asked.push(question);
        assert.ok(question.limit >= 1 && question.limit <= 100, `${question.limit} at once`);
        const focus = question.focus ? [node("1", MANY), node("1200", 0)] : undefined;
        const all = question.focus ? [] : children.get(question.parent ?? "");
        const offset = question.offset ?? 0;
        const items = all.slice(offset, offset + question.limit);
        return { session_ns: 1000, items, focus, rest: { paths: all.length - offset - items.length } };
    };
    return { children, asked, pages };
}

const idsOf = (model) => model.rows().map((row) => row.node?.id ?? `${row.rest?.paths ?? "?"} more`);

async function openRoot() {
    const source = makeSource();
    const model = new TreeModel(source.pages);
    await model.loadRoots();
    assert.deepEqual(idsOf(model), ["1"]);
    await model.open(source.children.get("")[0]);
    return { ...source, model };
}

test("children are loaded in portions, and a row says how many are left", async () => {
    const { model } = await openRoot();
    for (const [loaded, left] of [[12, MANY - 12], [112, MANY - 112], [212, MANY - 212], [MANY, 0]]) {
        const ids = idsOf(model);
        assert.equal(ids.length, 1 + loaded + (left > 0 ? 1 : 0));
        assert.deepEqual(ids.slice(1, 1 + loaded), Array.from({ length: loaded }, (_, index) => `1${index}`));
        assert.equal(ids.at(-1), left > 0 ? `${left} more` : `1${MANY - 1}`);
        const last = model.rows().at(-1);
        assert.equal(last.position, ids.length - 1);
        assert.equal(last.setSize, ids.length - 1);
        await model.loadMore("1");
    }
});

test("new calls keep the number of shown children and update their order", async () => {
    const { children, model } = await openRoot();
    await model.loadMore("1");
    await model.loadMore("1");
    children.get("1").reverse();
    await model.refresh();
    const ids = idsOf(model);
    assert.equal(ids.length, 1 + 212 + 1);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(ids[1], `1${MANY - 1}`);
    assert.equal(ids.at(-1), `${MANY - 212} more`);
});

test("a path that has moved up meanwhile is not shown twice", async () => {
    const { children, model } = await openRoot();
    children.get("1").unshift(node("new", 0));
    await model.loadMore("1");
    const ids = idsOf(model);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(ids.length, 1 + 12 + 99 + 1);
});

test("children of open rows are shown below them, and children of closed rows are not", async () => {
    const { children, model, asked } = await openRoot();
    const first = children.get("1")[0];
    await model.open(first);
    assert.deepEqual(idsOf(model).slice(0, 4), ["1", "10", "leaf", "11"]);
    assert.deepEqual(model.rows().slice(0, 4).map((row) => row.level), [1, 2, 3, 2]);
    const questions = asked.length;
    await model.open(children.get("10")[0]); // it has no callees, so nothing is requested
    model.close(first);
    assert.deepEqual(idsOf(model).slice(0, 3), ["1", "10", "11"]);
    await model.open(first); // already loaded
    assert.deepEqual(idsOf(model).slice(0, 3), ["1", "10", "leaf"]);
    assert.equal(asked.length, questions);
    model.close(first);
    await model.refresh(); // reloads only what is shown: the roots, and the children of one path
    assert.deepEqual(asked.slice(questions).map(({ parent }) => parent), [undefined, "1"]);
});

test("the path to one node is shown alone until its siblings are requested", async () => {
    const { pages } = makeSource();
    const model = new TreeModel(pages);
    assert.equal(await model.loadFocus({ focus: "1200" }), "1200");
    assert.deepEqual(idsOf(model), ["1", "1200", "? more", "? more"]);
    await model.loadMore("1");
    assert.equal(idsOf(model).length, 1 + 100 + 1 + 1);
});
