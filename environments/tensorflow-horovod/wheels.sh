#!/usr/bin/env bash
# Print the folder in which a wheel for a virtual environment is kept: environments/tensorflow-horovod/wheels.sh VENV
#
# A wheel fits one version of TensorFlow and of Python, finds its libraries by the environment's path, and is what
# build.sh and its requirements, of this content, make.
set -euo pipefail
venv=$(realpath "$1")
program='import sys; from importlib.metadata import version as v; print(v("tensorflow-cpu"), *sys.version_info[:2])'
built=$("$venv/bin/python" -c "$program")
here=$(dirname "$0")
key=$(printf '%s\n%s\n' "$venv" "$built" | cat - "$here/build.sh" "$here/build-requirements.txt" | sha256sum | cut -c1-16)
echo "${XDG_CACHE_HOME:-$HOME/.cache}/allranks/wheels/tensorflow-horovod-$key"
