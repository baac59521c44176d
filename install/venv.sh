#!/bin/sh
# Make a virtual environment, with a Python that pyproject.toml allows: install/venv.sh PYTHON VENV
set -eu
"$1" -c 'import sys
version = sys.version_info[:2]
if not (3, 11) <= version <= (3, 14):
    sys.exit("Python %d.%d: allranks needs 3.11 to 3.14. Name one: make PYTHON=python3.13 ..." % version)'
exec "$1" -m venv "$2"
