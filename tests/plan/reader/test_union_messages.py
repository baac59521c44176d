"""Of a value of several possible kinds, only the kind that its type or its keys select complains."""

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
    "mpi": (JOB, "distribution: {type: mpi, worker_count: 2}", NO_KEY, ""),
    "of a component": (COMPONENT, "distribution: {type: mpi, process_count_per_instance: x}", "'x'", "a whole number"),
    "no type": (JOB, "distribution: {worker_count: 2}", MISSING, "one of tensorflow"),
    "unknown type": (STEP, "distribution: {type: horovod}", "'horovod'", "one of pytorch, tensorflow, mpi, ray"),
    "no mapping": (STEP, "distribution: mpi", "'mpi'", "keys and values"),
    "bandit": (SWEEP + SPACE, "early_termination: {type: bandit, slack_factor: a lot}", "'a lot'", "a number"),
    "sampling by name": (SWEEP + SPACE, "sampling_algorithm: hyperopt", "'hyperopt'", "one of bayesian, grid, random"),
    "choice": (SWEEP, "search_space: {lr: {type: choice, value: [1, 2]}}", NO_KEY, ""),
    "distribution of a parameter": (
        SWEEP, "search_space: {lr: {type: log_uniform, min_value: 0.1, max_value: 1}}", "'log_uniform'",
        "one of choice, uniform, loguniform, quniform, qloguniform, normal, lognormal, qnormal, qlognormal, randint",
    ),
    "mode of data": (STEP, "inputs: {x: {type: uri_folder, path: 'azureml:d:1', mode: rw_mount}}", "'rw_mount'",
                     "one of download, ro_mount, direct"),
    "value in place of path": (STEP, "inputs: {x: {type: uri_folder, value: 'azureml:d:1'}}", NO_KEY, ""),
    "value in place of default": (COMPONENT, "inputs: {x: {type: integer, value: 3}}", NO_KEY, ""),
    "identity": (STEP, "identity: {type: managed, client: x}", NO_KEY, ""),
    "cron": (SCHEDULE, "trigger: {type: cron, expression: 5}", "5, which YAML reads as a number", "a text"),
    "recurrence": (SCHEDULE, "trigger: {type: recurrence, frequency: day}", MISSING, ""),
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


UNQUOTED = {
    "a date": ("2023-01-01", "a date"),
    "a sexagesimal number": ("12:30", "the number 750"),
    "a boolean": ("no", "false"),
    "a version": ("1.10", "the number 1.1"),
}


@pytest.mark.parametrize(("written", "read_as"), UNQUOTED.values(), ids=UNQUOTED)
def test_a_value_of_yaml_in_place_of_a_text(tmp_path: Path, written: str, read_as: str) -> None:
    (problem,) = errors(tmp_path, STEP.replace("settings", f"tags: {{t: {written}}}\nsettings"))
    assert (problem.found, problem.fix) == (
        f"{written}, which YAML reads as {read_as}",
        f'put it in quotes: "{written}"',
    )
    assert problem.where.endswith("x.yml:2)")


DATES = {
    "a step's input": (STEP, "inputs: {day: 2023-01-01}", "inputs.day"),
    "an enum": (COMPONENT, "inputs: {day: {type: string, enum: [a, 2023-01-01]}}", "inputs.day.enum.1"),
    "a choice": (SWEEP, "search_space: {lr: {type: choice, values: [a, 2023-01-01]}}", "search_space.lr.values.1"),
    "a start": (
        SCHEDULE,
        "trigger: {type: cron, expression: '0 3 * * *', start_time: 2023-01-01}",
        "trigger.start_time",
    ),
}


@pytest.mark.parametrize(("head", "line", "key"), DATES.values(), ids=DATES)
def test_a_date_that_is_not_in_quotes(tmp_path: Path, head: str, line: str, key: str) -> None:
    problem = errors(tmp_path, f"{head}{line}\n")[0]
    assert f"x.yml:{head.count(chr(10)) + 1}" in problem.where
    assert f"key {key}" in problem.where or problem.found.startswith("2023-01-01 in the enum")
    assert problem.fix == 'put it in quotes: "2023-01-01"'
