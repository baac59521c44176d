#!/usr/bin/env bash
# Write the pinned packages of the environments anew: environments/lock.sh [NAME...]
#
# For each folder, from requirements.in (what the steps import):
#   requirements.txt  what is the same with and without GPUs, each with its checksums
#   device-cuda.txt   what differs with GPUs: torch or TensorFlow and their CUDA libraries, each with its checksums
# device-cpu.txt is written by hand: torch for the CPU comes from an index of its own, which gives no checksums here.
# The versions are those that this checkout's tests run with: .venv, .venvs/allranks-tensorflow and
# .venvs/allranks-tensorflow-horovod. Needs uv on PATH (pip install uv).
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# azureml-mlflow takes neither today's tracker nor today's clients of Azure's storage.
freeze() { "$1/bin/python" -m pip freeze | grep -E "^[A-Za-z0-9_.-]+==" | grep -vE "^(mlflow|azure-storage|horovod|tensorflow)"; }
freeze ../.venv | sed 's/+cpu$//' >"$work/tested"
{ freeze ../.venv; freeze ../.venvs/allranks-tensorflow; } | sort -u >"$work/tested-tensorflow"
freeze ../.venvs/allranks-tensorflow-horovod >"$work/tested-tensorflow-horovod"

compile() { uv pip compile --quiet --python-version 3.11 --generate-hashes --no-annotate --no-header "$@"; }
# Linux on x86_64 with glibc 2.28 and up is all that the images are.
gpu=(--python-platform x86_64-manylinux_2_28)

for name in "${@:-openmpi-ofed pytorch deepspeed horovod tensorflow tensorflow-horovod lightning-transformers finetuning ray cpu gradient-boosting}"; do for folder in $name; do
    tested=$work/tested device= platform=(--universal)
    case $folder in
    tensorflow | tensorflow-horovod)
        tested=$work/tested-$folder
        # Its TensorFlow and NumPy are for Python 3.11 and older alone.
        [ "$folder" = tensorflow-horovod ] && platform=("${gpu[@]}")
        device='tensorflow[and-cuda]'
        ;;
    openmpi-ofed | cpu | gradient-boosting) ;;
    *) device=torch ;;
    esac
    apart=()
    if [ -n "$device" ]; then
        version=$(sed -n 's/^ARG \(TORCH\|TENSORFLOW\)_VERSION=//p' "$folder/Dockerfile")
        echo "$device==$version" >"$work/device"
        # Four-bit weights are for GPUs alone.
        [ "$folder" != finetuning ] || echo bitsandbytes >>"$work/device"
        compile "${gpu[@]}" --constraint "$tested" "$work/device" >"$work/device.txt"
        apart=(--no-emit-package torch --no-emit-package tensorflow-cpu)
        # Those for GPUs are known by their names; the rest stands in requirements.txt.
        awk '/^[a-z]/ { keep = /^(torch|triton|tensorflow|cuda-|nvidia-|bitsandbytes)/ } keep' "$work/device.txt" >"$folder/device-cuda.txt"
        awk '/^[a-z]/ && /^(cuda-|nvidia-|triton|bitsandbytes)/ { sub(/==.*/, ""); print }' "$work/device.txt" >"$work/names"
        while read -r package; do apart+=(--no-emit-package "$package"); done <"$work/names"
    fi
    compile "${platform[@]}" "${apart[@]}" --constraint "$tested" "$folder/requirements.in" >"$folder/requirements.txt"
done; done
