#!/bin/sh
# Install packages into a virtual environment: install/packages.sh VENV WHAT ARGUMENT...
#
# WHAT is printed first. ARGUMENT... is what `pip install` and `uv pip install` both take. Progress is shown on a terminal.
# UV: the uv to use; empty for pip. Default: the one on PATH.
set -eu
venv=$1 what=$2
shift 2
uv=${UV-$(command -v uv || true)}
quiet=--quiet
if test -t 1; then quiet=; fi

# uv does not read the settings of pip. Export those that say where packages come from.
export_setting() { # NAME-OF-PIP NAME-OF-UV [SEPARATOR]
    value=$(printf '%s\n' "$settings" |
        sed -n "/^[^=]*\.$1='/{ s/^[^']*'//; s/'\$//; s/\\\\n/ /g; s/^ *//; s/ /${3- }/g; p; q; }")
    if test -n "$value"; then eval "export $2=\"\${$2-\$value}\""; fi
}

if test -z "$uv"; then
    echo "Installing $what with pip"
    exec "$venv/bin/pip" install $quiet "$@"
fi
echo "Installing $what with uv"
settings=$("$venv/bin/pip" config list)
export_setting index-url UV_DEFAULT_INDEX
export_setting extra-index-url UV_INDEX
export_setting find-links UV_FIND_LINKS ,
export_setting constraint UV_CONSTRAINT
# The newest version of all indexes, as pip has it, not the newest of the first index that has the package.
export UV_INDEX_STRATEGY="${UV_INDEX_STRATEGY-unsafe-best-match}"
exec "$uv" pip install --python "$venv/bin/python" $quiet "$@"
