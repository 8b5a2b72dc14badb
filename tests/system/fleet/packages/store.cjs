// Starts a store that speaks S3 at a port of the loopback, with one bucket whose objects are kept in FOLDER.
//
// store.cjs PACKAGES_FOLDER FOLDER PORT BUCKET
const { createRequire } = require("node:module");

const [packages, directory, port, bucket] = process.argv.slice(2);
const load = createRequire(`${packages}/node_modules/`);
const utils = load("s3rver/lib/utils");
const walk = utils.walk;
// Up to 3.7.1, s3rver does not list a common prefix whose objects are two folders deeper, because it skips folders.
utils.walk = (folder) => walk(folder);
const Store = load("s3rver");
const configureBuckets = [{ name: bucket, configs: [] }];
new Store({ address: "127.0.0.1", port: Number(port), directory, silent: true, configureBuckets }).run();
