#!/bin/sh
# Install Microsoft's emulator of Azure Storage into a folder, and mark it as complete: install/azurite.sh FOLDER
# Without npm, or without a registry, the tests that need it are left out.
if ! command -v npm >/dev/null; then
    echo "npm is not here: the tests run without Azurite"
elif npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$1" azurite@3.37.0; then
    touch "$1/.installed"
else
    echo "Azurite could not be installed: the tests run without it"
fi
