#!/usr/bin/env bash
# Write the pinned packages of the environments anew: environments/lock.sh [NAME...]
#
# For each folder, from requirements.in (what the steps import):
#   requirements.txt  what is the same with and without GPUs, each with its checksums
#   device-cuda.txt   TensorFlow for GPUs and its CUDA libraries, each with its checksums
#   libraries-cuda.txt  what deepspeed and finetuning have for GPUs besides the libraries of torch
# "variants" as a NAME writes environments/variants: torch and its CUDA libraries for each CUDA release, to which the
# folders have links. variants/cuda12/libraries-cuda.in is written by hand, from the requirements of torch's wheel, whose
# index gives no checksums here. So is device-cpu.txt, which says the version of torch or TensorFlow.
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

# The lines of the packages whose names match $1, with their checksums.
only() { awk -v names="$1" '/^[a-z]/ { keep = $0 ~ names } keep'; }

version_in() { sed -n 's/^\(torch\|tensorflow-cpu\)==\([0-9.]*\).*/\2/p' "$1/device-cpu.txt"; }

variants() {
    version=$(version_in shared)
    compile "${gpu[@]}" variants/cuda12/libraries-cuda.in >variants/cuda12/libraries-cuda.txt
    echo "torch==$version" >"$work/torch"
    compile "${gpu[@]}" --constraint "$work/tested" "$work/torch" >"$work/cuda13.txt"
    only '^torch==' <"$work/cuda13.txt" >variants/cuda13/device-cuda.txt
    only '^(triton|cuda-|nvidia-)' <"$work/cuda13.txt" >variants/cuda13/libraries-cuda.txt
}

for name in "${@:-variants openmpi-ofed pytorch deepspeed horovod tensorflow tensorflow-horovod lightning-transformers finetuning ray cpu gradient-boosting}"; do for folder in $name; do
    tested=$work/tested device= platform=(--universal)
    case $folder in
    variants) variants; continue ;;
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
        echo "$device==$(version_in "$folder")" >"$work/device"
        # Four-bit weights are for GPUs alone. DeepSpeed requires NVIDIA's bindings only if it is built for GPUs.
        case $folder in
        finetuning) printf '%s\n' bitsandbytes nvidia-ml-py >>"$work/device" ;;
        deepspeed) echo nvidia-ml-py >>"$work/device" ;;
        esac
        compile "${gpu[@]}" --constraint "$tested" "$work/device" >"$work/device.txt"
        apart=(--no-emit-package torch --no-emit-package tensorflow-cpu)
        # Those for GPUs are known by their names; the rest stands in requirements.txt.
        if [ "$device" != torch ]; then
            only '^(tensorflow|cuda-|nvidia-)' <"$work/device.txt" >"$folder/device-cuda.txt"
        elif [ ! -L "$folder/libraries-cuda.txt" ]; then
            { echo "-r libraries-torch.txt"; only '^(bitsandbytes|nvidia-ml-py)==' <"$work/device.txt"; } >"$folder/libraries-cuda.txt"
        fi
        awk '/^[a-z]/ && /^(cuda-|nvidia-|triton|bitsandbytes)/ { sub(/==.*/, ""); print }' "$work/device.txt" >"$work/names"
        while read -r package; do apart+=(--no-emit-package "$package"); done <"$work/names"
    fi
    compile "${platform[@]}" "${apart[@]}" --constraint "$tested" "$folder/requirements.in" >"$folder/requirements.txt"
done; done
