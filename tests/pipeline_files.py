"""Files of a small project, written by tests: a component, pipelines that use it, in Python and in YAML."""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

from allranks.plan.graph import Plan
from allranks.plan.reader import read_plan

TRAIN = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
name: train
version: 1.2.0
display_name: Train
description: Trains.
type: command
is_deterministic: false
inputs:
  data: {type: uri_folder}
  lr: {type: number, default: 0.1, min: 0, max: 1}
  kind: {type: string, enum: [small, large], default: small}
  epochs: {type: integer, optional: true, min: 1}
  fast: {type: boolean, default: true}
outputs:
  model: {type: uri_folder, mode: upload}
  score: {type: number}
code: ./src
environment: azureml:torch@latest
environment_variables: {A: "1", B: "1"}
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2, shm_size: 4g}
command: >-
  python main.py --data ${{inputs.data}} --lr ${{inputs.lr}} --kind ${{inputs.kind}} --fast ${{inputs.fast}}
  $[[--epochs ${{inputs.epochs}}]] --out ${{outputs.model}} --score ${{outputs.score}}
"""

HEAD = """\
from azure.ai.ml import Input, MpiDistribution, Output, dsl, load_component

train = load_component(source="./train.yml")

"""
"""How every pipeline in Python begins here: the line after it is line 5."""


TWO_BY_TWO = """\
type: pipeline
jobs:
  train:
    type: command
    command: python train.py
    code: code
    environment: ENVIRONMENT
    environment_variables: {OPENBLAS_NUM_THREADS: "1"}
    distribution: {type: pytorch, process_count_per_instance: 2}
    resources: {instance_count: 2, shm_size: 64m}
"""
"""A training of two instances with two ranks each, in an environment, of ``code/train.py``."""


def write_training(folder: Path, script: str, environment: str, *dependencies: object) -> None:
    """Writes `TWO_BY_TWO` as job.yml, its script, and conda.yml with the dependencies, if there are any."""
    write(folder, "code/train.py", script)
    write(folder, "job.yml", TWO_BY_TWO.replace("ENVIRONMENT", environment))
    if dependencies:
        write(folder, "conda.yml", json.dumps({"dependencies": dependencies}))


def project(folder: Path) -> Path:
    """A folder with a component, its code, and data."""
    write(folder, "train.yml", TRAIN)
    write(folder, "src/main.py", "print('hello')\n")
    write(folder, "data/numbers.csv", "1,2\n")
    return folder


def write(folder: Path, name: str, text: str) -> Path:
    """Writes a file, with the text's common indentation taken away."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return path


def write_dsl(folder: Path, body: str, name: str = "pipeline.py") -> Path:
    """Writes a Python file that loads the component as `train` and then has this body."""
    return write(folder, name, HEAD + textwrap.dedent(body).lstrip("\n"))


def read(target: str | Path, values: Mapping[str, str] | None = None) -> Plan:
    """The plan, with its code kept in the current folder."""
    return read_plan(str(target), values or {}, Path("snapshots").absolute())
