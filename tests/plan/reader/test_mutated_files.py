"""Mutated pipelines, jobs and components: whatever a file holds, `check` returns problems, in time, and writes nothing.

``ALLRANKS_MUTATIONS=10000`` with ``--hypothesis-seed=N`` is the long form.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

from allranks.api import jobs
from allranks.checks import component
from allranks.history.workspace import Workspace
from allranks.local import preview
from allranks.local.instances.kinds import INSTANCE_KINDS
from allranks.plan import codec
from mutations import MUTATIONS, Mutation, mutated
from pipeline_files import TRAIN, write

COUNT = int(os.environ.get("ALLRANKS_MUTATIONS", "20"))
SECONDS = 30
"""What a check may take on a busy machine; most take 50 ms."""

SCHEMA = "$schema: https://azuremlschemas.azureedge.net/latest"
PREPARE = """\
type: command
name: prepare
inputs: {n: {type: integer, default: 3}, raw: {type: uri_folder, optional: true, mode: download}}
outputs: {out: {type: uri_folder}, again: {type: boolean, is_control: true}, lr: {type: number, is_control: true}}
environment: {image: "ubuntu:24.04", conda_file: {dependencies: [python=3.11]}}
command: echo ${{inputs.n}} $[[--raw ${{inputs.raw}}]] ${{outputs.out}} ${{outputs.again}} ${{outputs.lr}}
"""
PIPELINE = """\
type: pipeline
display_name: steps
experiment_name: steps
settings: {default_compute: azureml:cpu, continue_on_step_failure: false, force_rerun: true}
inputs: {data: {type: uri_folder, path: data}, lr: 0.5, n: 2}
outputs: {model: {type: uri_folder, mode: upload}}
jobs:
  prepare:
    type: command
    component: ./prepare.yml
    inputs: {n: "${{parent.inputs.n}}", raw: "${{parent.inputs.data}}"}
  fit:
    type: command
    component: ./train.yml
    compute: azureml:gpu
    inputs: {data: "${{parent.jobs.prepare.outputs.out}}", lr: "${{parent.inputs.lr}}", kind: small}
    outputs: {model: "${{parent.outputs.model}}"}
    environment_variables: {A: "${{parent.inputs.lr}}", C: text}
    distribution: {type: mpi, process_count_per_instance: 1}
    resources: {instance_count: 2, instance_type: Standard_NC6s_v3, shm_size: 1g}
    limits: {timeout: 60}
    identity: {type: managed}
    services: {own: {type: jupyter_lab}}
  inline:
    command: cat ${{inputs.model}} > ${{outputs.score}}
    code: ./src
    environment: azureml:base@latest
    inputs: {model: {type: custom_model, mode: ro_mount, path: "${{parent.jobs.fit.outputs.model}}"}}
    outputs: {score: {type: uri_file, path: "azureml://datastores/d/paths/p/", name: scores, version: "1"}}
"""
LOOP = """\
type: pipeline
jobs:
  prepare: {type: command, component: ./prepare.yml}
  body:
    type: command
    component: ./prepare.yml
    inputs: {n: 2, raw: "${{parent.jobs.prepare.outputs.out}}"}
  loop:
    type: do_while
    body: ${{parent.jobs.body}}
    condition: ${{parent.jobs.body.outputs.again}}
    mapping: {out: raw}
    limits: {max_iteration_count: 7}
"""
ITEMS = """\
type: pipeline
inputs: {data: {type: uri_folder, path: data}}
jobs:
  each: {type: command, component: ./train.yml, inputs: {data: "${{parent.inputs.data}}"}}
  items:
    type: parallel_for
    body: ${{parent.jobs.each}}
    items: [{lr: 0.5}, {lr: 1}]
    max_concurrency: 2
"""
CHOICE = """\
type: pipeline
inputs: {go: true}
jobs:
  one: {type: command, component: ./prepare.yml}
  other: {type: command, component: ./prepare.yml, inputs: {n: 2}}
  choice:
    type: if_else
    condition: ${{parent.inputs.go}}
    true_block: ${{parent.jobs.one}}
    false_block: ${{parent.jobs.other}}
"""
OUTER = """\
type: pipeline
jobs: {nested: {type: pipeline, component: ./nested.yml, inputs: {data: {path: data}}}}
"""
NESTED = f"""\
{SCHEMA}/pipelineComponent.schema.json
type: pipeline
name: nested
inputs: {{data: {{type: uri_folder}}}}
outputs: {{model: {{type: uri_folder}}}}
jobs:
  fit:
    type: command
    component: ./train.yml
    inputs: {{data: "${{{{parent.inputs.data}}}}"}}
    outputs: {{model: "${{{{parent.outputs.model}}}}"}}
"""
SWEEP = """\
type: pipeline
inputs: {data: {type: uri_folder, path: data}}
jobs:
  tune:
    type: sweep
    trial: ./train.yml
    inputs: {data: "${{parent.inputs.data}}"}
    sampling_algorithm: {type: random, seed: 3, rule: sobol, logbase: 10}
    objective: {goal: maximize, primary_metric: accuracy}
    limits: {max_total_trials: 7, max_concurrent_trials: 2, timeout: 7200, trial_timeout: 600}
    early_termination: {type: bandit, slack_factor: 0.1, delay_evaluation: 2, evaluation_interval: 1}
    search_space: {lr: {type: loguniform, min_value: -6, max_value: -1}, epochs: {type: choice, values: [2, 4]}}
  after: {type: command, component: ./train.yml, inputs: {data: "${{parent.jobs.tune.outputs.model}}"}}
"""
SWEEP_JOB = """\
type: sweep
trial: {command: "echo ${{inputs.n}} ${{search_space.lr}}", code: src, environment: azureml:x:1}
inputs: {n: 3}
sampling_algorithm: grid
search_space: {lr: {type: choice, values: [0.1, 0.2]}}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 2}
resources: {instance_count: 1}
"""
TASK = """\
task: {type: run_function, code: src, entry_script: score.py, environment: "azureml:x:1",
  program_arguments: "--label ${{inputs.label}}", append_row_to: "${{outputs.rows}}"}
input_data: ${{inputs.images}}
mini_batch_size: "2"
max_concurrency_per_instance: 2
mini_batch_error_threshold: 0
retry_settings: {max_retries: 0, timeout: 30}
resources: {instance_count: 2}
"""
SCORE = f"""\
{SCHEMA}/parallelComponent.schema.json
type: parallel
name: score
version: 1
inputs: {{images: {{type: uri_folder}}, label: {{type: string, default: abc}}}}
outputs: {{rows: {{type: uri_file}}}}
{TASK}"""
SCORED = """\
type: pipeline
inputs: {data: {type: uri_folder, path: data}}
jobs:
  scored: {type: parallel, component: ./score.yml, inputs: {images: "${{parent.inputs.data}}"}}
  score:
    type: parallel
    inputs: {images: "${{parent.inputs.data}}", label: abc}
    outputs: {rows: {type: uri_file}}
""" + "".join(f"    {line}\n" for line in TASK.splitlines())
OTHERS = """\
type: pipeline
inputs: {data: {type: uri_folder, path: data}}
jobs:
  clean:
    type: spark
    code: ./src
    entry: {file: main.py}
    args: --table ${{inputs.table}}
    conf:
      {spark.driver.cores: 1, spark.driver.memory: 2g, spark.executor.cores: 1, spark.executor.memory: 2g,
       spark.executor.instances: 1}
    resources: {instance_type: Standard_E8S_V3, runtime_version: "3.4"}
    inputs: {table: {type: uri_folder, mode: direct, path: "${{parent.inputs.data}}"}}
    outputs: {cleaned: {type: uri_folder, mode: direct}}
  merge:
    type: data_transfer
    task: copy_data
    inputs: {a: {type: uri_folder, path: data}}
    outputs: {b: {type: uri_folder}}
    data_copy_mode: merge_with_overwrite
  fit:
    type: automl
    task: classification
    primary_metric: accuracy
    target_column_name: y
    training_data: {type: mltable, path: data}
    limits: {max_trials: 3}
"""
COMMAND = """\
command: python main.py --data ${{inputs.data}} --out ${{outputs.out}}
code: src
environment: {build: {path: src, dockerfile_path: Dockerfile}}
inputs: {data: {type: uri_folder, path: data}, n: 3}
outputs: {out: {type: uri_folder}}
distribution: {type: tensorflow, worker_count: 2, parameter_server_count: 1}
resources: {instance_count: 3, instance_type: Standard_DS3_v2}
queue_settings: {job_tier: spot}
limits: {timeout: 100}
"""

FILES = {
    "train.yml": TRAIN,
    "prepare.yml": PREPARE,
    "nested.yml": NESTED,
    "score.yml": SCORE,
    "pipeline.yml": PIPELINE,
    "loop.yml": LOOP,
    "items.yml": ITEMS,
    "choice.yml": CHOICE,
    "outer.yml": OUTER,
    "sweep.yml": SWEEP,
    "scored.yml": SCORED,
    "others.yml": OTHERS,
    "tune.yml": SWEEP_JOB,
    "job.yml": COMMAND,
    "allranks.yaml": "components: {'azureml:x:1': ./train.yml}\ndata: {'azureml:d@latest': data}\n",
}
COMPONENTS = ("train.yml", "prepare.yml", "nested.yml", "score.yml")
USERS = {
    "train.yml": ("pipeline.yml", "sweep.yml"),
    "prepare.yml": ("pipeline.yml", "loop.yml"),
    "nested.yml": ("outer.yml",),
    "score.yml": ("scored.yml",),
    "allranks.yaml": ("pipeline.yml",),
}
"""The files to check after one of them has been mutated; without an entry, the file itself."""

OWN = {path.parent.name: path for path in Path(__file__).parents[3].joinpath("components").glob("*/*/component.yaml")}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The current folder: files of every kind, and a copy of this project's components."""
    folder = tmp_path_factory.mktemp("mutated") / "project"
    for name, text in {**FILES, "src/main.py": "print()", "src/score.py": "def run(batch): return batch"}.items():
        write(folder, name, text)
    write(folder, "data/numbers.csv", "1,2\n")
    write(folder, "src/Dockerfile", "FROM ubuntu:24.04\n")
    for name in ("components", "environments"):
        shutil.copytree(Path(__file__).parents[3] / name, folder / name)
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


class Watch:
    """What this process changes outside of temporary folders, and what it reaches, while it is on."""

    on, temporary = False, ""
    seen: list[str] = []  # noqa: RUF012 - an audit hook remains until the process ends
    CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod")
    REACHES = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.system")

    @classmethod
    def audit(cls, event: str, arguments: tuple[Any, ...]) -> None:
        if not cls.on:
            return
        if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            cls._changes(event, arguments[0])
        elif event in ("os.remove", "os.rmdir") and arguments[1] != -1:
            pass  # a relative path, below a folder that is being removed
        elif event in cls.CHANGES:
            cls._changes(event, arguments[1 if event in ("os.rename", "os.link", "os.symlink") else 0])
        elif event in cls.REACHES:
            cls.seen.append(f"{event} {arguments[:2]}")

    @classmethod
    def _changes(cls, event: str, path: Any) -> None:
        if isinstance(path, int):
            return
        text = os.path.abspath(os.fsdecode(path))
        if not text.startswith((cls.temporary, os.devnull)):
            cls.seen.append(f"{event} {text}")


sys.addaudithook(Watch.audit)


@contextmanager
def watched() -> Iterator[None]:
    """Fail if the block takes too long, or does what a check must not do."""

    def late(*_: object) -> None:
        pytest.fail(f"it took more than {SECONDS} s", pytrace=True)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    Watch.on, Watch.temporary = True, f"{tempfile.gettempdir()}/allranks-"
    try:
        yield
    finally:
        Watch.on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    seen, Watch.seen = [each for each in Watch.seen if "__pycache__" not in each], []
    assert seen == []


def check_job(path: Path) -> None:
    workspace = Path("workspace")
    checked = jobs.check(path, folder=workspace)
    assert all(problem.found for problem in checked.found)
    assert bool(checked.errors) or checked.plan is not None or bool(checked.machine)
    if checked.plan is not None and not checked.errors and not checked.machine:
        assert codec.loads(codec.dumps(checked.plan)).graph == checked.plan.graph
        preview.previews(checked.plan, Workspace(workspace), INSTANCE_KINDS["loopback"])
    assert not workspace.exists()


PASSED: set[tuple[str, bytes]] = set()
"""The files so far, so that each is another one: hypothesis repeats and varies what it has drawn."""


@pytest.mark.slow
@settings(
    max_examples=COUNT,
    derandomize=COUNT == 300,
    phases=[Phase.generate] if COUNT == 300 else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(name=st.sampled_from([*FILES, *FILES, *OWN]), mutations=MUTATIONS)
def test_a_check_always_returns(project: Path, name: str, mutations: tuple[list[Mutation], list[Mutation]]) -> None:
    path = Path(name) if name in FILES else OWN[name].relative_to(Path(__file__).parents[3])
    text = path.read_text(encoding="utf-8")
    content = mutated(text, *mutations)
    assume((name, content) not in PASSED)
    note(f"{path}:\n{content!r}")
    path.write_bytes(content)
    try:
        with watched():
            if path.name == "component.yaml" or name in COMPONENTS:
                component.check([path])
            for user in USERS.get(name, (name,) if name in FILES else ()):
                check_job(Path(user))
        PASSED.add((name, content))
    finally:
        path.write_text(text, encoding="utf-8")


def test_the_files_are_right_before_they_are_mutated(project: Path) -> None:
    users = {user for name in FILES for user in USERS.get(name, (name,))}
    assert [jobs.check(project / user, folder=Path("workspace")).errors for user in sorted(users)] == [()] * len(users)


LONG = "x" * 5000
FOUND = (
    "inputs: {a: {enum: true}}\ntags: {requires.a.b: ''}", f"code: {LONG}", "environment_variables: 3",
    "additional_includes: 7", f"environment: {LONG}", f"additional_includes: [{LONG}]\ncommand: python train.py",
)  # fmt: skip
FOUND_IN_PIPELINES = {
    "pipeline.yml": ("path: data", "path: data" + "/z" * 3000),
    "job.yml": ("Dockerfile", LONG),
    "scored.yml": ("entry_script: score.py", f"entry_script: {LONG}"),
    "outer.yml": ("path: data", 'path: "a\\0b"'),
    "sweep.yml": ("./train.yml", LONG),
    "items.yml": ("inputs: {data: {type: uri_folder, path: data}}", "inputs: [[data]]"),
    "choice.yml": ("component: ./prepare.yml", f"component: {LONG}"),
}


def test_what_mutations_have_found(project: Path) -> None:
    for keys in FOUND:
        tree = {"environment": "azureml:x:1", "command": "ls", **yaml.safe_load(keys)}
        Path("a.yml").write_text(f"type: command\nname: a\n{yaml.safe_dump(tree)}")
        assert component.check([Path("a.yml")]).errors, keys
    for name, (old, new) in FOUND_IN_PIPELINES.items():
        Path(f"a-{name}").write_text(FILES[name].replace(old, new))
        found = jobs.check(f"a-{name}", folder=Path("workspace"))
        assert found.errors or name == "pipeline.yml", name
