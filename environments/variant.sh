#!/usr/bin/env bash
# Choose the CUDA release that the environments are built with: environments/variant.sh cuda12|cuda13
#
# shared/ gets links to the release's images and pinned libraries in variants/, and environment.yaml and expect.yaml its
# versions. With a release that is not the default, the registered versions end with its name: a workspace can have both.
set -euo pipefail
cd "$(dirname "$0")"
name=${1-} default=cuda12
[ -f "variants/$name/images.Dockerfile" ] || { echo "$0: expected one of: $(ls variants | xargs)" >&2; exit 2; }

for file in images.Dockerfile device-cuda.txt libraries-cuda.txt; do ln -sf "../variants/$name/$file" shared/; done
image=$(sed -n 's/^ARG BASE_IMAGE=//p' shared/images.Dockerfile)
cuda=$(grep -o 'cuda:[0-9]*\.[0-9]*' <<<"$image") cuda=${cuda#cuda:}
nccl=$(sed -n 's/^nvidia-nccl-cu[0-9]*==\([0-9.]*\).*/\1/p' shared/libraries-cuda.txt)
suffix=-$name
[ "$name" != "$default" ] || suffix=

for dockerfile in $(grep -l '^# allranks: include ../shared/base' */Dockerfile); do
    folder=$(dirname "$dockerfile")
    edits=(-e "s/^(version: \"[0-9.]+)(-cuda[0-9]+)?\"/\1$suffix\"/" -e "s|^(  base-image: ).*|\1\"$image\"|"
        -e "s/libcudart\.so\.[0-9]+/libcudart.so.${cuda%.*}/")
    # TensorFlow has a CUDA of its own.
    [ ! -L "$folder/device-cuda.txt" ] || edits+=(-e "s/^(  cuda: ).*/\1\"$cuda\"/" -e "s/^(  nccl: ).*/\1\"$nccl\"/"
        -e "s/(torch: \{cuda: )\"[^\"]*\"(, nccl: )\"[^\"]*\"/\1\"$cuda\"\2\"$nccl\"/")
    sed -i -E "${edits[@]}" "$folder/environment.yaml" "$folder/expect.yaml"
done
