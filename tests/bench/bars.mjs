// bars.mjs BUILD: a picture of 36,000 bars in Debian's Chromium, as rectangles of a canvas and as pixels that are
// put there at once (web-static/src/canvas/bars.ts). Least and median of 25 rounds, by turns.
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(path.resolve(process.argv[2]), "web", "package.json"));
const { chromium } = require("playwright-core");
const browser = await chromium.launch({
    executablePath: process.env.SJ_CHROMIUM || "/usr/bin/chromium-headless-shell",
    args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
const times = await page.evaluate(async () => {
    const [wide, high, rows, each, row, rounds] = [1391, 612, 30, 1200, 18, 25];
    const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high });
    document.body.append(canvas);
    const context = canvas.getContext("2d");
    const bars = Array.from({ length: rows * each }, (_, i) => ({
        left: ((i % each) * wide) / each,
        row: Math.floor(i / each),
        colour: `hsl(${(i * 37) % 360} 62% 75%)`,
        pixel: (0xff000000 | (i * 2654435761)) >>> 0,
    }));
    const image = new ImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    const drawRectangles = () => {
        context.clearRect(0, 0, wide, high);
        for (const bar of bars) {
            context.fillStyle = bar.colour;
            context.fillRect(bar.left, bar.row * row, wide / each, row - 1);
        }
    };
    const writePixels = () => {
        pixels.fill(0);
        const lines = new Uint32Array(rows * wide);
        for (const bar of bars) {
            const from = Math.floor(bar.left);
            const to = Math.max(from + 1, Math.round(bar.left + wide / each));
            lines.fill(bar.pixel, bar.row * wide + from, bar.row * wide + to);
        }
        for (let i = 0; i < rows; i++) {
            const line = lines.subarray(i * wide, (i + 1) * wide);
            for (let y = i * row; y < (i + 1) * row - 1; y++) {
                pixels.set(line, y * wide);
            }
        }
        context.putImageData(image, 0, 0);
    };
    const timeOf = async (draw) => {
        await new Promise(requestAnimationFrame);
        const start = performance.now();
        draw();
        context.getImageData(0, 0, 1, 1); // what was recorded is drawn now
        return performance.now() - start;
    };
    const taken = { rectangles: [], pixels: [] };
    for (let i = 0; i < rounds; i++) {
        taken.rectangles.push(await timeOf(drawRectangles));
        taken.pixels.push(await timeOf(writePixels));
    }
    return taken;
});
for (const [how, list] of Object.entries(times)) {
    const sorted = list.sort((a, b) => a - b);
    console.log(`${how}: ${sorted[0].toFixed(1)} ms least, ${sorted[Math.floor(sorted.length / 2)].toFixed(1)} ms median`);
}
await browser.close();
