#!/bin/sh
# install.sh NPM FOLDER [FROM]: installs the packages of the folder FROM, by default the readers of columnar.mjs,
# unless FOLDER has these versions.
set -eu
npm=$1
from=$(cd "${3:-$(dirname "$0")}" && pwd)
mkdir -p "$2"
cd "$2"
if ! cmp -s "$from/package-lock.json" node_modules/.made-from; then
    cp "$from"/package*.json "$from/.npmrc" .
    "$npm" ci --ignore-scripts --loglevel=error
    cp package-lock.json node_modules/.made-from
fi
