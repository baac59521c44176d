#!/bin/sh
# Make an environment with TensorFlow 2.15 and Horovod, which takes no newer one: install/tensorflow-horovod.sh VENV PYTHON
set -eu
venv=$1 folder=environments/tensorflow-horovod
"$2" -m venv "$venv"
"$(dirname "$0")/packages.sh" "$venv" "TensorFlow 2.15 for the CPU (320 MB)" \
    --requirement $folder/build-requirements.txt \
    "tensorflow-cpu==2.15.1" "numpy==1.26.4" "mlflow-skinny>=3.15" pandas "python-dateutil<3"
wheels=$($folder/wheels.sh "$venv")
test -n "$(find "$wheels" -name '*.whl' 2>/dev/null)" || nice $folder/build.sh "$venv" "$wheels"
exec "$venv/bin/pip" install --quiet "$wheels"/*.whl
