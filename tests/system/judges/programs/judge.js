// V8 and libuv: maps, hashes, compressors, a stack that overflows, regular expressions, ICU, files, a
// worker, a child. judge.js SIZE; ends with 3.
const crypto = require('crypto');
const zlib = require('zlib');
const { Worker, isMainThread, parentPort } = require('worker_threads');

function main(size) {
  const words = new Map();
  for (let i = 0; i < size; i++) {
    const word = 'w' + i * 7919 % 101;
    words.set(word, (words.get(word) || 0) + 1);
  }
  console.log([...words].sort().join(' '));
  const text = JSON.stringify([...words]).repeat(20);
  console.log(crypto.createHash('sha1').update(text).digest('hex'), zlib.deflateSync(text).length);
  try {
    (function deep() { deep(); })();
  } catch (error) {
    console.log(error.name);
  }
  console.log('aXbXc'.replace(/(\w)X/gu, '<$1>'), new Intl.NumberFormat('de').format(1234567.5));
  console.log(require('fs').readFileSync(__filename).length);
  new Worker(__filename).on('message', message => {
    console.log(message);
    require('child_process').execFile('echo', ['child'], (error, out) => {
      console.log(out.trim());
      process.exitCode = 3;
    });
  });
}

if (isMainThread) {
  main(Number(process.argv[2]));
} else {
  parentPort.postMessage(crypto.createHash('sha256').update('worker').digest('hex'));
}
