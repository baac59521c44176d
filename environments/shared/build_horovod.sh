#!/usr/bin/env bash
# Build Horovod's wheel from its unmodified source package, against the torch or the TensorFlow, and the Open MPI, of a
# virtual environment.
#
#     build.sh VENV OUTDIR
#
# Leaves horovod-*.whl in OUTDIR. Its libraries look for the others in VENV, so that a wheel serves the environment that it
# was built in. Takes 3 minutes on 2 cores; needs g++ and cmake.
set -euo pipefail

HOROVOD=horovod==0.28.1
venv=$(realpath "$1")
mkdir -p "$2"
target=$(realpath "$2")

for tool in g++ cmake; do
    command -v "$tool" >/dev/null || { echo "horovod's build needs $tool: install it, then try again" >&2; exit 2; }
done
"$venv/bin/pip" install --quiet --requirement "$(dirname "$0")/build-requirements.txt"

# Horovod asks for C++14 and takes no other standard from outside; torch's headers need C++17. Its debug information, which
# cmake adds after every flag that comes from outside, is a third of the time. Only what moves and adds numbers is worth
# -O3: the bindings to the framework and the bookkeeping are most of the rest.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/c++" <<'WRAPPER'
#!/usr/bin/env bash
case "$*" in
    *" -c "*/common/ops/* | *" -c "*/gloo/* | *" -c "*/half.cc*) optimisation=-O3 ;;
    *) optimisation=-O1 ;;
esac
arguments=()
for argument in "$@"; do
    case $argument in
        -std=*++1[14]) arguments+=(-std=gnu++17) ;;
        -O3) arguments+=("$optimisation") ;;
        -g) ;;
        *) arguments+=("$argument") ;;
    esac
done
exec g++ "${arguments[@]}"
WRAPPER
chmod +x "$work/c++"

export PATH="$venv/bin:$PATH"
# PyPI's Open MPI does not find itself where it was not built; the distribution's must not be told another place.
[ ! -e "$venv/bin/mpicxx" ] || export OPAL_PREFIX="$venv"
export CXX="$work/c++" CXXFLAGS="-include cstdint"                # <cstdint> came with other headers in older compilers
export CMAKE_POLICY_VERSION_MINIMUM=3.5                           # its cmake files ask for a version that is gone
framework=PYTORCH other=TENSORFLOW
python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("torch"))' || framework=TENSORFLOW other=PYTORCH
export "HOROVOD_WITH_$framework=1" HOROVOD_WITH_GLOO=1 HOROVOD_WITH_MPI=1
export "HOROVOD_WITHOUT_$other=1" HOROVOD_WITHOUT_MXNET=1
export NVCC_APPEND_FLAGS="${NVCC_APPEND_FLAGS:-} -std=c++17"      # for GPUs: nvcc takes the last -std that it is given
export MAKEFLAGS="-j$(nproc)"                                     # not a calling make's, whose job server is out of reach
"$venv/bin/pip" wheel --no-cache-dir --no-build-isolation --no-deps --wheel-dir "$target" "$HOROVOD"
