#!/bin/sh
# Build Horovod for an environment from its unmodified source package, or install what was built:
# install/horovod.sh VENV build|install
set -eu
wheels=$(environments/horovod/wheels.sh "$1")
if test "$2" = install; then
    exec "$1/bin/pip" install --quiet "$wheels"/*.whl
fi
test -n "$(find "$wheels" -name '*.whl' 2>/dev/null)" || nice environments/horovod/build.sh "$1" "$wheels"
