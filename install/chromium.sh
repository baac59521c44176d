#!/bin/sh
# Install the distribution's Chromium, in which tests look at pages: install/chromium.sh
# Only root can, on Debian and its like. Elsewhere the tests that need it are left out.
for name in chromium chromium-browser google-chrome; do
    if command -v $name >/dev/null; then exit 0; fi
done
if test "$(id -u)" != 0 || ! command -v apt-get >/dev/null; then
    echo "Chromium is not here: the tests run without it"
    exit 0
fi
echo "Installing Chromium with apt-get (110 MB)"
export DEBIAN_FRONTEND=noninteractive
if ! { apt-get update && apt-get install --yes --no-install-recommends chromium fonts-dejavu-core; } >/dev/null; then
    echo "Chromium could not be installed: the tests run without it"
fi
