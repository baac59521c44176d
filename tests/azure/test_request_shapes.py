"""What is sent for each kind of node has the keys and the types that the service's own recordings show.

Written by hand from azure-sdk-for-python's recordings; docs/azure.md says from how many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from allranks.azure import dry_run
from allranks.azure.changes import place
from allranks.azure.workspace import NO_WORKSPACE
from allranks.plan.reader import opened
from allranks.plan.reader.pipeline import without_compute

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"

LITERAL = {"job_input_type": str, "value": str, "mode": str}
BOUND_OUTPUT = {"type": str, "value": str, "mode": str, "job_output_type": str}
COUNT = (int, str)
"""A number, or a binding."""

NODE = {"name": str, "type": str, "_source": str, "componentId": str}
COMMAND = {
    **NODE,
    "display_name": str,
    "computeId": str,
    "environment_variables": {"*": str},
    "inputs": {"*": LITERAL},
    "outputs": {"*": BOUND_OUTPUT},
    "resources": {"instance_count": COUNT, "instance_type": str},
    "distribution": {"distribution_type": str, "process_count_per_instance": COUNT},
}
SEARCHED = {
    "choice": {"values": list},
    "randint": {"upper": int},
    **{key: {"min_value": float, "max_value": float} for key in ("uniform", "loguniform")},
    **{key: {"min_value": float, "max_value": float, "q": int} for key in ("quniform", "qloguniform")},
    **{key: {"mu": float, "sigma": float} for key in ("normal", "lognormal")},
    **{key: {"mu": float, "sigma": float, "q": int} for key in ("qnormal", "qlognormal")},
}
SWEEP = {
    "name": str,
    "type": str,
    "_source": str,
    "computeId": str,
    "trial": {"componentId": str},
    "limits": {"max_concurrent_trials": int, "max_total_trials": int, "timeout": int},
    "sampling_algorithm": str,
    "objective": {"goal": str, "primary_metric": str},
    "early_termination": {
        "policy_type": str,
        "delay_evaluation": int,
        "evaluation_interval": int,
        "truncation_percentage": int,
    },
    "search_space": {"*": {"type": str, **{key: kind for each in SEARCHED.values() for key, kind in each.items()}}},
    "queue_settings": {"job_tier": str},
    # An input that the search space sets has no value.
    "inputs": {"*": LITERAL},
    "outputs": {"*": BOUND_OUTPUT},
}
TASK = {
    "type": str,
    "code": str,
    "entry_script": str,
    "program_arguments": str,
    "environment": str,
    "append_row_to": str,
}
PARALLEL = {
    **NODE,
    "display_name": str,
    "resources": {"instance_count": COUNT},
    "error_threshold": COUNT,
    "mini_batch_error_threshold": COUNT,
    "mini_batch_size": int,
    "max_concurrency_per_instance": COUNT,
    "logging_level": str,
    "retry_settings": {"timeout": int, "max_retries": int},
    "task": TASK,
    "input_data": str,
    "inputs": {"*": LITERAL},
    "outputs": {"*": BOUND_OUTPUT},
}
SHAPES: dict[str, Any] = {
    "command": COMMAND,
    "sweep": SWEEP,
    "parallel": PARALLEL,
    "bound_parallel": PARALLEL,
    "pipeline": {**NODE, "inputs": {"*": LITERAL}, "outputs": {"*": BOUND_OUTPUT}},
    "data_transfer": {
        **NODE,
        "task": str,
        "data_copy_mode": str,
        "inputs": {"*": LITERAL},
        "outputs": {"*": BOUND_OUTPUT},
    },
    "spark": {
        **NODE,
        "resources": {"instance_type": str, "runtime_version": str},
        "py_files": list,
        "files": list,
        "jars": list,
        "identity": {"identity_type": str},
        "conf": {"*": (int, str)},
        "args": str,
        "entry": {"spark_job_entry_type": str, "file": str},
        "inputs": {"*": LITERAL},
        "outputs": {"*": BOUND_OUTPUT},
    },
    "parallel_for": {"type": str, "_source": str, "body": str, "items": str},
    "do_while": {
        "type": str,
        "_source": str,
        "body": str,
        "condition": str,
        "mapping": {"*": list},
        "limits": {"max_iteration_count": int},
    },
    "if_else": {"type": str, "_source": str, "condition": str, "true_block": (str, list), "false_block": (str, list)},
}
SWEEP_JOB = {
    "properties": {"*": str},
    "tags": {"*": str},
    "computeId": str,
    "displayName": str,
    "experimentName": str,
    "isArchived": bool,
    "jobType": str,
    "earlyTermination": {
        "policyType": str,
        "delayEvaluation": int,
        "evaluationInterval": int,
        "truncationPercentage": int,
    },
    "inputs": {"*": {"jobInputType": str, "value": str, "uri": str, "mode": str}},
    "limits": {"jobLimitsType": str, "timeout": str, "maxConcurrentTrials": int, "maxTotalTrials": int},
    "objective": {"goal": str, "primaryMetric": str},
    "outputs": {"*": {"jobOutputType": str, "mode": str}},
    "samplingAlgorithm": {"samplingAlgorithmType": str},
    "searchSpace": {"*": list},
    "trial": {"codeId": str, "command": str, "environmentId": str, "environmentVariables": {"*": str}},
}


def unlike(shape: Any, value: Any, place: str = "") -> list[str]:
    """Where a value has a key or a type that the shape lacks."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{place} is {value!r}"]
        found = []
        for key, inner in value.items():
            known = shape.get(key, shape.get("*"))
            found += unlike(known, inner, f"{place}.{key}") if known else [f"{place}.{key} = {inner!r}"]
        return found
    allowed = (int, float) if shape is float else shape
    fits = isinstance(value, allowed) and (not isinstance(value, bool) or shape is bool)
    return [] if fits else [f"{place} is {value!r}"]


def compiled(path: Path) -> dict[str, Any]:
    with opened(str(path), {}) as job:
        if without_compute(job.job):  # as `submit --compute`
            place(job.job, "cpu")
        return dict(dry_run.body_of(job.job, NO_WORKSPACE)["properties"])


PORTS = {"inputs": {"data": {"type": "uri_folder"}, "rate": {"type": "number", "default": 0.1}}}
OUTPUTS = {"outputs": {"model": {"type": "uri_folder"}, "again": {"type": "boolean", "is_control": True}}}
PROGRAM = {"command": "train ${{inputs.data}} ${{inputs.rate}} ${{outputs.model}}", "environment": "azureml:base:1"}
TRAIN = {"type": "command", "name": "train", "version": "1", **PORTS, **OUTPUTS, **PROGRAM}
TASK_GIVEN = {
    "type": "run_function",
    "code": ".",
    "entry_script": "score.py",
    "environment": "azureml:base:1",
    "program_arguments": "--a 1",
    "append_row_to": "${{outputs.model}}",
}
BATCH = {
    "type": "parallel",
    "name": "score",
    "version": "1",
    "inputs": {"data": {"type": "uri_folder"}},
    "outputs": {"model": {"type": "uri_file"}},
    "input_data": "${{inputs.data}}",
    "mini_batch_size": "5",
    "resources": {"instance_count": 2},
    "max_concurrency_per_instance": 2,
    "error_threshold": 1,
    "mini_batch_error_threshold": 1,
    "logging_level": "DEBUG",
    "retry_settings": {"timeout": 3, "max_retries": 10},
    "task": TASK_GIVEN,
}
INNER = {"type": "pipeline", "name": "inner", "version": "1", "inputs": {"data": {"type": "uri_folder"}}}
INNER["jobs"] = {
    "train": {"type": "command", "component": "./train.yml", "inputs": {"data": "${{parent.inputs.data}}"}}
}
DATA = {"data": "${{parent.inputs.data}}"}
SPACE = {
    "rate": {"type": "uniform", "min_value": 0.1, "max_value": 0.5},
    **{
        name: {"type": name, **dict(zip(keys, (1, 5, 2), strict=False))}
        for name, keys in SEARCHED.items()
        if name not in ("choice", "randint")
    },
    "randint": {"type": "randint", "upper": 5},
    "choice": {"type": "choice", "values": [1, 2]},
}
SWEPT = {
    **TRAIN,
    "name": "swept",
    "inputs": {**PORTS["inputs"], **{name: {"type": "number", "default": 1} for name in SPACE if name != "rate"}},
}
SWEEP_GIVEN = {
    "sampling_algorithm": "random",
    "objective": {"goal": "maximize", "primary_metric": "accuracy"},
    "limits": {"max_concurrent_trials": 2, "max_total_trials": 4, "timeout": 7200},
    "early_termination": {
        "type": "truncation_selection",
        "truncation_percentage": 40,
        "delay_evaluation": 2,
        "evaluation_interval": 1,
    },
}
SPARK = {
    "type": "spark",
    "name": "count",
    "version": "1",
    "inputs": {"data": {"type": "uri_folder", "mode": "direct"}},
    "outputs": {"model": {"type": "uri_folder", "mode": "direct"}},
    "code": "./src",
    "entry": {"file": "count.py"},
    "py_files": ["a.zip"],
    "args": "--data ${{inputs.data}} --out ${{outputs.model}}",
    "conf": {
        **dict.fromkeys(("spark.driver.cores", "spark.executor.cores", "spark.executor.instances"), 1),
        **dict.fromkeys(("spark.driver.memory", "spark.executor.memory"), "1g"),
    },
}
NODES: dict[str, dict[str, Any]] = {
    "command": {
        "type": "command",
        "component": "./train.yml",
        "inputs": DATA,
        "compute": "azureml:gpu",
        "environment_variables": {"A": "b"},
        "resources": {"instance_count": 2},
        "distribution": {"type": "pytorch", "process_count_per_instance": 4},
        "outputs": {"model": "${{parent.outputs.model}}"},
    },
    "sweep": {
        "type": "sweep",
        "trial": "./swept.yml",
        "inputs": DATA,
        "compute": "azureml:gpu",
        "search_space": SPACE,
        "queue_settings": {"job_tier": "standard"},
        **SWEEP_GIVEN,
    },
    "parallel": {"type": "parallel", "component": "./score.yml", "inputs": DATA},
    "bound_parallel": {
        "type": "parallel",
        "component": "./score.yml",
        "inputs": DATA,
        "resources": {"instance_count": "${{parent.inputs.count}}"},
        **dict.fromkeys(
            ("error_threshold", "mini_batch_error_threshold", "max_concurrency_per_instance"),
            "${{parent.inputs.count}}",
        ),
    },
    "pipeline": {"type": "pipeline", "component": "./inner.yml", "inputs": DATA},
    "data_transfer": {
        "type": "data_transfer",
        "task": "copy_data",
        "component": "./merge.yml",
        "inputs": {"a": DATA["data"], "b": DATA["data"]},
    },
    "spark": {
        "type": "spark",
        "component": "./count.yml",
        "inputs": DATA,
        "identity": {"type": "user_identity"},
        "resources": {"instance_type": "standard_e4s_v3", "runtime_version": "3.4"},
    },
    "parallel_for": {"type": "parallel_for", "body": "${{parent.jobs.command}}", "items": '[{"rate": 1}]'},
    "do_while": {
        "type": "do_while",
        "body": "${{parent.jobs.command}}",
        "condition": "again",
        "mapping": {"model": "data"},
        "limits": {"max_iteration_count": 5},
    },
    "if_else": {
        "type": "if_else",
        "condition": "${{parent.jobs.command.outputs.again}}",
        "true_block": "${{parent.jobs.other}}",
    },
}
MERGE = {
    "type": "data_transfer",
    "task": "copy_data",
    "data_copy_mode": "merge_with_overwrite",
    "name": "merge",
    "version": "1",
    "inputs": {name: {"type": "uri_folder"} for name in "ab"},
    "outputs": {"model": {"type": "uri_folder"}},
}


def project(folder: Path) -> Path:
    specs = {"train": TRAIN, "swept": SWEPT, "score": BATCH, "inner": INNER, "merge": MERGE, "count": SPARK}
    for name, spec in specs.items():
        (folder / f"{name}.yml").write_text(yaml.safe_dump(spec))
    for name in ("score.py", "src/count.py", "src/a.zip", "data/words"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    return folder


@pytest.mark.parametrize("kind", NODES)
def test_a_node(kind: str, tmp_path: Path) -> None:
    jobs = {name: NODES[name] for name in dict.fromkeys(("command", kind))}
    if kind == "if_else":
        jobs["other"] = {"type": "command", "component": "./train.yml", "inputs": DATA}
    pipeline = {
        "type": "pipeline",
        "inputs": {"data": {"type": "uri_folder", "path": "./data"}, "count": 2},
        "outputs": {"model": {"type": "uri_folder"}},
        "settings": {"default_compute": "azureml:cpu"},
        "jobs": jobs,
    }
    path = project(tmp_path) / "pipeline.yml"
    path.write_text(yaml.safe_dump(pipeline))
    node = compiled(path)["jobs"][kind]
    assert unlike(SHAPES[kind], node) == []
    # Whatever the file sets is sent.
    assert {key for key in SHAPES[kind] if key in NODES[kind] and key != "component"} <= set(node)


def test_a_sweep_job(tmp_path: Path) -> None:
    job = {
        "type": "sweep",
        "trial": {
            "command": "train ${{search_space.rate}}",
            "environment": "azureml:base:1",
            "code": "./src",
            "environment_variables": {"A": "b"},
        },
        "inputs": {"epochs": 3},
        "compute": "azureml:cpu",
        "search_space": {"rate": SPACE["rate"]},
        **SWEEP_GIVEN,
    }
    path = project(tmp_path) / "job.yml"
    path.write_text(yaml.safe_dump(job))
    sent = compiled(path)
    assert unlike(SWEEP_JOB, sent) == []
    assert sent["searchSpace"]["rate"] == ["uniform", [0.1, 0.5]]
    limits = {"jobLimitsType": "Sweep", "timeout": "PT2H", "maxConcurrentTrials": 2, "maxTotalTrials": 4}
    assert sent["limits"] == limits


# The recordings have no sampling with a seed, and no sweep with resources of its own.
OURS = {
    "tune_image_classifier.py": {
        "sweep": {
            **SWEEP,
            "sampling_algorithm": {"type": str, "seed": int, "rule": str},
            "early_termination": {**SWEEP["early_termination"], "slack_factor": float},
            "resources": COMMAND["resources"],
        }
    },
    "score_images.py": {},
}


@pytest.mark.parametrize("name", OURS)
def test_our_pipelines(name: str) -> None:
    shapes = {**SHAPES, **OURS[name]}
    jobs = compiled(PIPELINES / name)["jobs"]
    assert [found for step, job in jobs.items() for found in unlike(shapes[job["type"]], job, step)] == []
