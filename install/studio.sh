#!/bin/sh
# Build the front end of the studio from its sources: install/studio.sh WEB
# Without npm, or without a registry, the tests that need it are left out.
set -eu
cd "$1"
if ! command -v npm >/dev/null; then
    echo "npm is not here: the studio has no pages, and the tests run without them"
    exit 0
fi
# npm writes this file when all packages are there.
if ! test node_modules/.package-lock.json -nt package-lock.json; then
    echo "Installing the packages of the studio's pages with npm (160 MB)"
    if ! npm ci --loglevel=error; then
        echo "The packages of the studio's pages could not be installed: the tests run without them"
        exit 0
    fi
fi
npm run --silent build
