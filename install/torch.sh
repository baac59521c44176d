#!/bin/sh
# Install PyTorch into a virtual environment: install/torch.sh VENV PACKAGE CPU_INDEX [OPTION...]
#
# On a machine without an NVIDIA driver PACKAGE comes from CPU_INDEX, PyTorch's index of builds for the CPU, if that
# answers within 5 seconds. Otherwise, and if CPU_INDEX is empty, from where pip finds it: on PyPI it has CUDA.
# NVIDIA_DRIVER: files one of which exists where the driver is installed.
set -eu
venv=$1 package=$2 index=$3
driver=
shift 3

for file in ${NVIDIA_DRIVER-/proc/driver/nvidia /dev/nvidiactl /usr/lib/wsl/lib/nvidia-smi}; do
    if test -e "$file"; then driver=$file; fi
done
if test -z "$index"; then
    what=$package
elif test -n "$driver"; then
    what="$package for CUDA ($driver exists; 2.7 GB)"
elif timeout 5 "$venv/bin/python" -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "$index/torch/" \
    2>/dev/null; then
    what="$package for the CPU (this machine has no NVIDIA driver; 200 MB)"
    set -- "$@" --extra-index-url "$index"
else
    what="$package ($index is not available; 200 MB for the CPU, 2.7 GB for CUDA)"
fi
exec "$(dirname "$0")/packages.sh" "$venv" "$what" "$@" "$package"
