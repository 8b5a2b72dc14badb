// embed.mjs DIST [URL=FILE...] OUTPUT: writes the C table of embedded files (assets.h).
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";

const types = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
};

function listFiles(folder, url = "") {
    return readdirSync(folder, { withFileTypes: true })
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .flatMap((entry) =>
            entry.isDirectory()
                ? listFiles(path.join(folder, entry.name), `${url}/${entry.name}`)
                : [{ url: `${url}/${entry.name}`, file: path.join(folder, entry.name) }],
        );
}

function bytesOf(name, data) {
    const lines = [];
    for (let at = 0; at < data.length; at += 24) {
        lines.push("    " + [...data.subarray(at, at + 24)].join(",") + ",");
    }
    return `static const uint8_t ${name}[] = {\n${lines.join("\n")}\n};\n`;
}

const [dist, ...rest] = process.argv.slice(2);
const output = rest.pop();
const extra = rest.map((pair) => {
    const at = pair.indexOf("=");
    return { url: pair.slice(0, at), file: pair.slice(at + 1) };
});

const arrays = [];
const rows = [];
[...listFiles(dist), ...extra].forEach(({ url, file }, index) => {
    const data = readFileSync(file);
    const etag = createHash("sha256").update(data).digest("hex").slice(0, 32);
    const served = url === "/index.html" ? "/" : url;
    arrays.push(bytesOf(`data_${index}`, data));
    arrays.push(bytesOf(`gzip_${index}`, gzipSync(data, { level: 9 })));
    rows.push(
        `    {"${served}", "${types[path.extname(file)]}", "\\"${etag}\\"", ` +
            `${url.startsWith("/assets/")}, data_${index}, sizeof(data_${index}), ` +
            `gzip_${index}, sizeof(gzip_${index})},`,
    );
});

writeFileSync(
    output,
    `/* Written by web-static/embed.mjs. */\n#include "collector-server/http/assets.h"\n\n` +
        `${arrays.join("\n")}\nconst sj_asset sj_assets[] = {\n${rows.join("\n")}\n};\n\n` +
        `const size_t sj_asset_count = sizeof(sj_assets) / sizeof(sj_assets[0]);\n`,
);
