#!/usr/bin/env bash
# Print the folder in which Horovod's wheel for a virtual environment is kept: wheels.sh VENV
#
# A wheel fits one version of torch or TensorFlow and of Python, finds its libraries by the environment's path, and is what
# build.sh and its requirements, of this content, make.
set -euo pipefail
venv=$(realpath "$1")
program='import sys; from importlib.metadata import distributions as found
names = {each.name: each.version for each in found()}
print(*((name, names[name]) for name in ("torch", "tensorflow-cpu") if name in names), *sys.version_info[:2])'
built=$("$venv/bin/python" -c "$program")
here=$(dirname "$0")
key=$(printf '%s\n%s\n' "$venv" "$built" | cat - "$here/build.sh" "$here/build-requirements.txt" | sha256sum | cut -c1-16)
echo "${XDG_CACHE_HOME:-$HOME/.cache}/allranks/wheels/horovod-$key"
