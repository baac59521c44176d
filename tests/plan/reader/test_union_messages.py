"""Of a value of several possible kinds, only the kind that its type or its keys select complains."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.checks import component
from allranks.errors import InputError, Level, Problem
from allranks.schedules.finding import find_schedules
from allranks.sdk.session import session

JOB = "type: command\ncommand: ls\nenvironment: azureml:x:1\ncompute: azureml:c\n"
STEP = """\
type: pipeline
settings: {default_compute: azureml:c}
jobs:
  a:
    command: ls
    environment: azureml:x:1
    """
SWEEP = """\
type: sweep
trial: {command: "echo ${{search_space.lr}}", environment: azureml:x:1}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 2}
compute: azureml:c
"""
SPACE = "search_space: {lr: {type: uniform, min_value: 0.1, max_value: 0.9}}\n"
COMPONENT = "type: command\nname: c\nversion: '1'\ncommand: ls\nenvironment: azureml:x:1\n"
SCHEDULE = "name: s\ncreate_job: azureml:job\n"
NO_KEY = "Azure ML has no such key"
MISSING = "the key is missing"

FILES = {
    "pytorch": (JOB, "distribution: {type: pytorch, process_count_per_instance: two}", "'two'", "a whole number"),
    "tensorflow": (JOB, "distribution: {type: tensorflow, worker_count: many}", "'many'", "a whole number"),
    "mpi": (JOB, "distribution: {type: mpi, worker_count: 2}", NO_KEY, ""),
    "ray": (STEP, "distribution: {type: ray, port: none}", "'none'", "a whole number"),
    "of a component": (COMPONENT, "distribution: {type: mpi, process_count_per_instance: x}", "'x'", "a whole number"),
    "no type": (JOB, "distribution: {worker_count: 2}", MISSING, "one of tensorflow"),
    "unknown type": (STEP, "distribution: {type: horovod}", "'horovod'", "one of pytorch, tensorflow, mpi, ray"),
    "no mapping": (STEP, "distribution: mpi", "'mpi'", "keys and values"),
    "bandit": (SWEEP + SPACE, "early_termination: {type: bandit, slack_factor: a lot}", "'a lot'", "a number"),
    "median": (SWEEP + SPACE, "early_termination: {type: median_stopping, slack_factor: 0.1}", NO_KEY, ""),
    "truncation": (SWEEP + SPACE, "early_termination: {type: truncation_selection}", MISSING, ""),
    "sampling": (SWEEP + SPACE, "sampling_algorithm: {type: random, seed: abc}", "'abc'", "a whole number"),
    "sampling by name": (SWEEP + SPACE, "sampling_algorithm: hyperopt", "'hyperopt'", "one of bayesian, grid, random"),
    "choice": (SWEEP, "search_space: {lr: {type: choice, value: [1, 2]}}", NO_KEY, ""),
    "uniform": (SWEEP, "search_space: {lr: {type: uniform, min_value: 0.1}}", MISSING, ""),
    "distribution of a parameter": (
        SWEEP, "search_space: {lr: {type: log_uniform, min_value: 0.1, max_value: 1}}", "'log_uniform'",
        "one of choice, uniform, loguniform, quniform, qloguniform, normal, lognormal, qnormal, qlognormal, randint",
    ),
    "mode of data": (STEP, "inputs: {x: {type: uri_folder, path: 'azureml:d:1', mode: rw_mount}}", "'rw_mount'",
                     "one of download, ro_mount, direct"),
    "mode of a table": (JOB, "inputs: {x: {type: mltable, path: 'azureml:d:1', mode: mount}}", "'mount'",
                        "one of download, ro_mount, eval_mount, eval_download, direct"),
    "mode of an output": (STEP, "outputs: {x: {type: uri_folder, mode: ro_mount}}", "'ro_mount'",
                          "one of mount, upload, rw_mount, direct"),
    "value in place of path": (STEP, "inputs: {x: {type: uri_folder, value: 'azureml:d:1'}}", NO_KEY, ""),
    "value in place of default": (COMPONENT, "inputs: {x: {type: integer, value: 3}}", NO_KEY, ""),
    "service": (STEP, "services: {s: {type: ssh, port: many}}", "'many'", "a whole number"),
    "identity": (STEP, "identity: {type: managed, client: x}", NO_KEY, ""),
    "environment": (JOB, "environment_variables: 3", "3", "keys and values"),
    "cron": (SCHEDULE, "trigger: {type: cron, expression: 5}", "5, which YAML reads as a number", "a text"),
    "recurrence": (SCHEDULE, "trigger: {type: recurrence, frequency: day}", MISSING, ""),
    "frequency": (SCHEDULE, "trigger: {type: recurrence, frequency: daily, interval: 1}", "'daily'",
                  "minute or hour or day or week or month"),
}  # fmt: skip
FIXES = {
    "choice": "did you mean values?",
    "value in place of path": "did you mean path?",
    "value in place of default": "did you mean default?",
    "identity": "did you mean client_id?",
    "distribution of a parameter": "did you mean loguniform?",
    "cron": 'put it in quotes: "5"',
}


def errors(folder: Path, text: str) -> list[Problem]:
    file = folder / "x.yml"
    file.write_text(text)
    try:
        if text.startswith(COMPONENT):
            return list(component.check([file]).errors)
        if text.startswith(SCHEDULE):
            with session(client=False):
                find_schedules(file)
            return []
        return [each for each in jobs.check(file, folder=folder / "workspace").found if each.level is Level.ERROR]
    except InputError as error:
        return list(error.problems)


@pytest.mark.parametrize(("kind", "head", "line", "found", "expected"), [(kind, *row) for kind, row in FILES.items()])
def test_one_kind_complains(tmp_path: Path, kind: str, head: str, line: str, found: str, expected: str) -> None:
    (problem,) = errors(tmp_path, f"{head}{line}\n")
    assert (problem.found, problem.expected) == (found, expected)
    assert f"x.yml:{head.count(chr(10)) + 1}" in problem.where or found == MISSING
    assert problem.fix.startswith(FIXES.get(kind, problem.fix))


@pytest.mark.parametrize("kind", [kind for kind, row in FILES.items() if row[-1].startswith("one of ")])
def test_the_values_that_a_message_lists_are_accepted(tmp_path: Path, kind: str) -> None:
    head, line, found, expected = FILES[kind]
    for value in expected.removeprefix("one of ").split(", "):
        wrong = found.strip("'")
        text = f"{head}{line.replace(wrong, value) if wrong in line else line.replace('{', f'{{type: {value}, ', 1)}\n"
        assert not any(
            problem.found == repr(value) or problem.expected == expected for problem in errors(tmp_path, text)
        )


UNQUOTED = {
    "a date": ("2023-01-01", "a date"),
    "a sexagesimal number": ("12:30", "the number 750"),
    "a boolean": ("no", "false"),
    "a version": ("1.10", "the number 1.1"),
}


@pytest.mark.parametrize(("written", "read_as"), UNQUOTED.values(), ids=UNQUOTED)
@pytest.mark.parametrize("key", ["display_name: {}", "tags: {{t: {}}}"])
def test_a_value_of_yaml_in_place_of_a_text(tmp_path: Path, key: str, written: str, read_as: str) -> None:
    (problem,) = errors(tmp_path, f"{STEP.replace('settings', f'{key.format(written)}{chr(10)}settings')}\n")
    assert (problem.found, problem.fix) == (
        f"{written}, which YAML reads as {read_as}",
        f'put it in quotes: "{written}"',
    )
    assert problem.where.endswith("x.yml:2)")


DATES = {
    "a job's input": (JOB, "inputs: {day: 2023-01-01}", "inputs.day"),
    "a step's input": (STEP, "inputs: {day: 2023-01-01}", "inputs.day"),
    "a default": (COMPONENT, "inputs: {day: {type: string, default: 2023-01-01}}", "inputs.day.default"),
    "an enum": (COMPONENT, "inputs: {day: {type: string, enum: [a, 2023-01-01]}}", "inputs.day.enum.1"),
    "a choice": (SWEEP, "search_space: {lr: {type: choice, values: [a, 2023-01-01]}}", "search_space.lr.values.1"),
    "properties": (JOB, "properties: {day: 2023-01-01}", "properties.day"),
    "a name": (JOB, "name: 2023-01-01", "name"),
    "a start": (
        SCHEDULE,
        "trigger: {type: cron, expression: '0 3 * * *', start_time: 2023-01-01}",
        "trigger.start_time",
    ),
    "a zone": (SCHEDULE, "trigger: {type: cron, expression: '0 3 * * *', time_zone: 2023-01-01}", "trigger.time_zone"),
}


@pytest.mark.parametrize(("head", "line", "key"), DATES.values(), ids=DATES)
def test_a_date_that_is_not_in_quotes(tmp_path: Path, head: str, line: str, key: str) -> None:
    problem = errors(tmp_path, f"{head}{line}\n")[0]
    assert f"x.yml:{head.count(chr(10)) + 1}" in problem.where
    assert f"key {key}" in problem.where or problem.found.startswith("2023-01-01 in the enum")
    assert problem.fix == 'put it in quotes: "2023-01-01"'
