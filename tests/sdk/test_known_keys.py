"""The key that was probably meant, at any level of every kind of file."""

import pytest
import yaml

from allranks.sdk.validation_errors import misspelt, similar

FILES = {
    "of a job": ("command job", "command: ls\ncomputte: gpu\n", {"computte": "compute"}),
    "in a job's resources": (
        "command job",
        "resources: {instance_cuont: 2}\ntags: {computte: x}\n",
        {"resources.instance_cuont": "instance_count"},
    ),
    "in a distribution": (
        "command job",
        "distribution: {type: pytorch, process_count_per_instanc: 2}\n",
        {"distribution.process_count_per_instanc": "process_count_per_instance"},
    ),
    "of a pipeline": ("pipeline job", "setings: {}\n", {"setings": "settings"}),
    "in a pipeline's settings": (
        "pipeline job",
        "settings: {default_computte: gpu}\n",
        {"settings.default_computte": "default_compute"},
    ),
    "of a step": ("pipeline job", "jobs: {train: {computte: gpu}}\n", {"jobs.train.computte": "compute"}),
    "in a step's distribution": (
        "pipeline job",
        "jobs: {train: {distribution: {type: mpi, proces_count_per_instance: 2}}}\n",
        {"jobs.train.distribution.proces_count_per_instance": "process_count_per_instance"},
    ),
    "of a component": ("command component", "enviroment: x\n", {"enviroment": "environment"}),
    "in a component's input": (
        "command component",
        "inputs: {lr: {type: number, defualt: 1}}\n",
        {"inputs.lr.defualt": "default"},
    ),
    "of a schedule": (
        "schedule",
        "trigger: {type: cron, expresion: '* * * * *'}\n",
        {"trigger.expresion": "expression"},
    ),
    "of an environment": (
        "environment",
        "name: x\nimagee: y\nbuild: {pth: .}\n",
        {"imagee": "image", "build.pth": "path"},
    ),
    "names of the user": (
        "pipeline job",
        "inputs: {computte: 1}\njobs: {jbos: {environment_variables: {comand: x}, inputs: {envrionment: 1}}}\n",
        {},
    ),
    "what resembles nothing": ("command job", "foo: 1\nx-mine: {bar: 2}\n", {}),
    "an unknown kind": ("sweep component", "computte: x\n", {}),
}


@pytest.mark.parametrize(("kind", "text", "expected"), FILES.values(), ids=FILES)
def test_a_misspelt_key_is_found_with_the_one_that_was_meant(kind: str, text: str, expected: dict[str, str]) -> None:
    assert dict(misspelt(kind, yaml.safe_load(text))) == expected
    for key, meant in expected.items():
        assert similar(kind, key, yaml.safe_load(text)) == meant
