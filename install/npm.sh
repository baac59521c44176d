#!/bin/sh
# Install a package of npm into a folder, and mark it as complete by a file of its name: install/npm.sh FOLDER/PACKAGE@VERSION
# Without npm, or without a registry, the tests that need it are left out.
package=${1##*/}
if ! command -v npm >/dev/null; then
    echo "npm is not here: the tests run without $package"
elif npm install --silent --no-audit --no-fund --ignore-scripts --prefix "${1%/*}" "$package"; then
    touch "$1"
else
    echo "$package could not be installed: the tests run without it"
fi
