#!/bin/sh
# Make an environment with TensorFlow: install/tensorflow.sh VENV PYTHON
set -eu
"$2" -m venv "$1"
exec "$(dirname "$0")/packages.sh" "$1" "TensorFlow for the CPU (360 MB)" \
    "tensorflow-cpu>=2.21,<2.22" "numpy>=2.1" "mlflow-skinny>=3.15" pandas pyyaml
