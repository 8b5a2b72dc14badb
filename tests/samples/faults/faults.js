// Each line of input makes accesses of WebAssembly that fault, and stacks that overflow, and prints what was caught.
'use strict';
const readline = require('readline');

const section = (id, ...bytes) => [id, bytes.length, ...bytes];
const name = (text) => [text.length, ...Buffer.from(text)];
// (func (param i32) (result i32)) load, divide; (func (result i32)) endless; a memory of one page
const load = [0, 0x20, 0, 0x28, 2, 0, 0x0b];
const divide = [0, 0x41, 7, 0x20, 0, 0x6d, 0x0b];
const endless = [0, 0x20, 0, 0x41, 1, 0x6a, 0x10, 2, 0x41, 1, 0x6a, 0x0b];
const code = [load, divide, endless].flatMap((body) => [body.length, ...body]);
const exported = [['load', 0], ['divide', 1], ['endless', 2]].flatMap(([text, index]) => [...name(text), 0, index]);
const wasm = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, 1, 0x60, 1, 0x7f, 1, 0x7f),
    ...section(3, 3, 0, 0, 0),
    ...section(5, 1, 0, 1),
    ...section(7, 3, ...exported),
    ...section(10, 3, ...code),
]))).exports;

function descend(n) {
    return descend(n + 1) + 1;
}

function caught(call, kind, text) {
    try {
        call();
    } catch (error) {
        return error instanceof kind && error.message.includes(text) ? 1 : 1000000;
    }
    return 0;
}

function batch() {
    let count = 0;
    for (let i = 0; i < 2000; i++) {
        count += caught(() => wasm.load(65536 + i * 4), WebAssembly.RuntimeError, 'out of bounds');
        count += caught(() => wasm.divide(i % 2), WebAssembly.RuntimeError, 'divide by zero');
    }
    for (let i = 0; i < 3; i++) {
        count += caught(() => wasm.endless(0), RangeError, 'call stack');
        count += caught(() => descend(0), RangeError, 'call stack');
    }
    return count;
}

readline.createInterface({ input: process.stdin })
    .on('line', () => console.log(`caught ${batch()}`))
    .on('close', () => process.exit(3));
