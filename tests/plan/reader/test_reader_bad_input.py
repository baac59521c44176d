"""Whatever is wrong with a pipeline's file is told as problems with their places, and nothing else happens."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.errors import InputError, Level
from allranks.plan import codec
from allranks.plan.reader import read_plan
from pipeline_files import read, write, write_dsl
from plan_findings import check

pytestmark = pytest.mark.usefixtures("here")


def problems(target: str | Path, values: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        read_plan(str(target), values or {}, Path("snapshots").absolute())
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return [(problem.where, problem.found) for problem in caught.value.problems]


JOB = "type: pipeline\njobs:\n  a:\n    type: command\n    component: ./train.yml\n    inputs: {data: {path: data}}\n"

AUTOML = """\
type: automl
task: classification
primary_metric: accuracy
target_column_name: y
training_data: {type: mltable, path: data}
"""
YAML = {
    "tab": ("type: pipeline\njobs:\n\ta: 1\n", "x.yml:3:1", "it is not YAML: while scanning for the next token"),
    "tag": ("a: !!python/object:os.system {}\n", "x.yml:1:4", "it is not YAML: could not determine a constructor"),
    "key": ("type: pipeline\ninputs: {yes: 1}\njobs: {}\n", "x.yml:2", "YAML does not read the key yes as text"),
    "type": ("type: pipelines\njobs: {}\n", "key type (x.yml:1)", "a job of type pipelines does not run"),
    "item that is a number": (
        JOB + '  b: {type: parallel_for, body: "${{parent.jobs.a}}", items: [{lr: 1}, 2]}\n',
        "step b, key items (x.yml:7)",
        "item 1 is 2",
    ),
    "service that is a number": (JOB + "    services: {ssh: 3}\n", "step a, key services.ssh (x.yml:7)", "3"),
    "bad environment": ("command: ls\nenvironment: x\n", "key environment (x.yml:2)", "'x'"),
    "compute of the preview's schema": (
        "command: ls\nenvironment: azureml:x:1\ncompute: {target: azureml:gpu, instance_count: 2}\n",
        "key compute (x.yml:3)",
        "keys and values: target, instance_count",
    ),
    "a type of a literal": (
        "command: ls\nenvironment: azureml:x:1\ninputs:\n  name: {type: string, description: x}\n",
        "key inputs.name (x.yml:4)",
        "it declares a type",
    ),
    "keys for an experiment": (
        "command: ls\nenvironment: azureml:x:1\nexperiment_name: {name: x}\n",
        "key experiment_name (x.yml:3)",
        "keys and values: name",
    ),
    "component file": (
        JOB.replace("train.yml", "nope.yml"),
        "step a, key component (x.yml:5)",
        "./nope.yml does not exist",
    ),
    "text for a count": (
        JOB + "    resources: {instance_count: two}\n",
        "step a, key resources.instance_count (x.yml:7)",
        "'two'",
    ),
    "shm_size": (
        JOB + "    resources: {shm_size: much}\n",
        "step a, key resources.shm_size (x.yml:7)",
        "'much'",
    ),
    "bound count": (
        JOB + '    resources: {instance_count: "${{parent.inputs.n}}"}\n',
        "step a, key resources.instance_count (x.yml:7)",
        "the pipeline has no input n",
    ),
    "distribution": (
        JOB + "    distribution: {type: horovod}\n",
        "step a, key distribution.type (x.yml:7)",
        "'horovod'",
    ),
    "input type": (
        JOB.replace("{path: data}", "{type: uri_fold, path: data}"),
        "step a, key inputs.data.type (x.yml:6)",
        "'uri_fold'",
    ),
    "node type": (JOB.replace("type: command", "type: comand"), "step a, key type (x.yml:4)", "'comand'"),
    "unknown pipeline output": (
        JOB + '    outputs: {model: "${{parent.outputs.best}}"}\n',
        "step a, key outputs.model (x.yml:7)",
        "the pipeline has no output best",
    ),
    "unknown pipeline input, written into the pipeline": (
        (
            "type: pipeline\njobs:\n  a:\n    command: ls ${{inputs.x}}\n    environment: azureml:x:1\n"
            '    inputs:\n      x: "${{parent.inputs.nope}}"\n'
        ),
        "step a, key inputs.x (x.yml:7)",
        "${{parent.inputs.nope}} refers to an unknown input of the pipeline",
    ),
    "primitive output, written into the pipeline": (
        (
            "type: pipeline\njobs:\n  a:\n    command: ls\n    environment: azureml:x:1\n"
            "    outputs: {score: {type: number}}\n"
        ),
        "step a, key outputs.score.type (x.yml:6)",
        "'number'",
    ),
    "declared like a component's": (
        "type: pipeline\ninputs: {n: {type: integer, default: 3}}\n" + JOB.removeprefix("type: pipeline\n"),
        "key inputs.n (x.yml:2)",
        "it declares a type",
    ),
    "a component that no pipeline may have either": (
        "$schema: https://azuremlschemas.azureedge.net/latest/sweepComponent.schema.json\nname: tune\n",
        "x.yml",
        "it describes a component of type sweep, which the local engine does not run yet",
    ),
    "a sweep that has no type": (
        "$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json\ntrial: {}\n",
        "x.yml",
        "it describes a sweep, but it has no type",
    ),
    "an AutoML job": (AUTOML, "job (x.yml)", "an AutoML job does not run"),
    "a wrong AutoML job": (AUTOML + "resources: serverless\n", "key resources (x.yml:6)", "'serverless'"),
    "a fine-tuning job": ("type: finetuning\n", "key type (x.yml:1)", "a fine-tuning job of the service does not run"),
    "a pipeline component": (
        "$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json\njobs: {}\n",
        "x.yml",
        "it describes a pipeline component, not a job",
    ),
    "node name": (JOB.replace("  a:", "  A/b:"), "step A/b (x.yml:3)", "'A/b' cannot be the name of a step"),
}


@pytest.mark.parametrize(("text", "where", "found"), YAML.values(), ids=YAML)
def test_yaml(here: Path, text: str, where: str, found: str) -> None:
    (here / "x.yml").write_text(text)
    ((at, said),) = problems("x.yml")
    assert at == where
    assert said.startswith(found)
    assert not os.path.exists("snapshots") or not list(Path("snapshots").glob(".new-*"))


DROPPED = {
    "twice": (JOB + "  a:\n    command: ls\n    environment: azureml:x:1\n", "x.yml:7", "duplicate key jobs.a"),
    "unknown input": (
        JOB.replace("{data:", "{dat: 1, data:"),
        "step a, key inputs.dat (x.yml:6)",
        "the component has no input dat",
    ),
    "unknown output": (
        JOB + "    outputs: {modle: }\n",
        "step a, key outputs.modle (x.yml:7)",
        "the component has no output modle",
    ),
}


@pytest.mark.parametrize(("text", "where", "found"), DROPPED.values(), ids=DROPPED)
def test_what_azure_ai_ml_drops_is_a_warning(here: Path, text: str, where: str, found: str) -> None:
    (here / "x.yml").write_text(text)
    plan = read("x.yml")
    warnings = [(problem.where, problem.found, problem.level) for problem in plan.findings]
    assert warnings == [
        (where, found, Level.WARNING),
        ("key settings.default_compute (x.yml)", "no compute is given for step a", Level.WARNING),
    ]
    assert codec.loads(codec.dumps(plan)).findings == ()


NODES = {
    "a Spark node": """
        type: spark
        code: src
        entry: {file: main.py}
        conf:
          spark.driver.cores: 1
          spark.driver.memory: 2g
          spark.executor.cores: 1
          spark.executor.memory: 2g
          spark.executor.instances: 1
        resources: {instance_type: Standard_E4S_V3, runtime_version: "3.4"}
        """,
}


@pytest.mark.parametrize("kind", NODES)
def test_nodes_that_are_not_run_yet(here: Path, kind: str) -> None:
    write(
        here,
        "inner.yml",
        "$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json\n" + JOB,
    )
    body = NODES[kind].replace("\n        ", "\n    ")
    write(here, "x.yml", f"type: pipeline\njobs:\n  special:{body}")
    plan = read_plan("x.yml", {}, here / "snapshots")
    expected = [("step special (x.yml:3)", f"{kind} does not run on this machine")]
    assert [(row.where, row.found) for row in check(plan) if row.rule == "not-run-here"] == expected


DSL = {
    "syntax": ("def digits(:\n", "pipeline.py:5", "it is not Python: invalid syntax"),
    "import": ("import no_such_module.part\n", "pipeline.py:5", "there is no module no_such_module"),
    "raises on import": ("x = 1\ny = x / 0\n", "pipeline.py:6", "ZeroDivisionError: division by zero"),
    "ends Python": ("import sys\nsys.exit(3)\n", "pipeline.py:6", "it ends Python while it is read"),
    "no pipeline": ("def digits():\n    pass\n", "pipeline.py", "it has no pipeline"),
    "component file": ("other = load_component(source='./nope.yml')\n", "pipeline.py:5", "nope.yml does not exist"),
    "raises in a helper": (
        "def helper():\n    raise ValueError('no\\nway')\n\n@dsl.pipeline()\ndef digits():\n    helper()\n",
        "pipeline.py:6",
        "ValueError: no way",
    ),
    "unknown argument": (
        "@dsl.pipeline()\ndef digits():\n    step = train(data=Input(path='data'), lrr=1)\n",
        "pipeline.py:7",
        "there is no input lrr",
    ),
    "returns nonsense": (
        "@dsl.pipeline()\ndef digits():\n    return 3\n",
        "pipeline.py",
        "the function returns something else than a dictionary of outputs",
    ),
    "bound count": (
        (
            "@dsl.pipeline()\ndef digits(n: int):\n    step = train(data=Input(path='data'))\n"
            "    step.resources = {'instance_count': n}\n"
        ),
        "step step, key resources.instance_count (pipeline.py:7)",
        "it is bound to the pipeline's input n, which has no value before the run",
    ),
    "a fraction of a process": (
        (
            "from azure.ai.ml import PyTorchDistribution\n@dsl.pipeline()\ndef digits():\n"
            "    step = train(data=Input(path='data'))\n"
            "    step.distribution = PyTorchDistribution(process_count_per_instance=1.5)\n"
        ),
        "step step, key distribution.process_count_per_instance (pipeline.py:8)",
        "1.5",
    ),
}


@pytest.mark.parametrize(("body", "where", "found"), DSL.values(), ids=DSL)
def test_python(here: Path, body: str, where: str, found: str) -> None:
    write_dsl(here, body)
    ((at, said),) = problems("pipeline.py")
    assert at == where
    assert said.startswith(found)
    assert "\n" not in said


def test_a_helper_beside_the_file_that_raises(here: Path) -> None:
    write(here, "helpers.py", "def fail():\n    raise RuntimeError('helpless')\n")
    write_dsl(here, "import helpers\n\n@dsl.pipeline()\ndef digits():\n    helpers.fail()\n")
    assert problems("pipeline.py") == [("pipeline.py:9", "RuntimeError: helpless")]


PIPELINE = """
@dsl.pipeline()
def digits(data: Input(type="uri_folder"), epochs: int = 3, lr: float = 0.1, ready: bool = True):
    step = train(data=data, epochs=epochs, lr=lr, fast=ready)
"""


@pytest.mark.parametrize(
    ("values", "where", "found", "fix"),
    [
        ({"epoch": "3"}, "input epoch", "the pipeline has no input epoch", "did you mean epochs?"),
        ({"zzz": "3"}, "input zzz", "the pipeline has no input zzz", "remove it, or declare the input"),
        ({"epochs": "2.5"}, "input epochs", "'2.5'", "set epochs to a whole number"),
        ({"lr": "much"}, "input lr", "'much'", "set lr to a number"),
        ({"ready": "maybe"}, "input ready", "'maybe'", "set ready to true or false"),
        ({"data": ""}, "input data", "''", "set data to a path"),
    ],
)
def test_values(here: Path, values: dict[str, str], where: str, found: str, fix: str) -> None:
    write_dsl(here, PIPELINE)
    with pytest.raises(InputError) as caught:
        read_plan("pipeline.py", values, here / "snapshots")
    (problem,) = caught.value.problems
    assert (problem.where, problem.found, problem.fix) == (where, found, fix)


def test_every_value_that_is_wrong_is_told(here: Path) -> None:
    write_dsl(here, PIPELINE)
    assert [where for where, _ in problems("pipeline.py", {"lr": "x", "epochs": "y"})] == ["input lr", "input epochs"]


@pytest.mark.parametrize(
    ("target", "where", "found"),
    [
        ("nope.py", "nope.py", "there is no such file"),
        (".", ".", "it is a folder"),
        ("data/numbers.csv", "data/numbers.csv", "a file that ends with '.csv' is not known"),
        ("pipeline.py:", "pipeline.py:", "there is no name after the colon"),
        ("pipeline.py:digit", "pipeline.py", "there is no digit"),
        ("pipeline.py:train", "pipeline.py", "train is not a pipeline"),
        ("x.yml:digits", "x.yml:digits", "digits names a function or a job, but x.yml is not a Python file"),
    ],
)
def test_targets(here: Path, target: str, where: str, found: str) -> None:
    write_dsl(here, PIPELINE)
    write(here, "x.yml", JOB)
    assert problems(target) == [(where, found)]


def test_a_component_that_cannot_be_parsed(here: Path) -> None:
    write(here, "train.yml", "a: [1\n")
    write(here, "x.yml", JOB)
    ((where, found),) = problems("x.yml")
    assert where == "train.yml:1"
    assert found.startswith("it is not YAML")


def test_included_code_that_is_not_there(here: Path) -> None:
    component = (here / "train.yml").read_text()
    write(here, "train.yml", component + "additional_includes: [../nope]\n")
    write(here, "x.yml", JOB)
    ((where, found),) = problems("x.yml")
    assert where == "step a, key additional_includes (x.yml:3)"
    assert found.startswith("Unable to find additional include")


def test_every_problem_of_every_step_is_told_once(here: Path) -> None:
    write(here, "train.yml", (here / "train.yml").read_text().replace("shm_size: 4g", "shm_size: much"))
    body = "type: command\n    component: ./train.yml\n    inputs: {data: {path: data}, dat: 1}\n"
    write(here, "x.yml", f"type: pipeline\njobs:\n  a:\n    {body}  b:\n    {body}")
    found = [where for where, _ in problems("x.yml")]
    assert found == [
        "step a, key inputs.dat (x.yml:6)",
        "step a, key resources.shm_size (x.yml:3)",
        "step b, key inputs.dat (x.yml:10)",
        "step b, key resources.shm_size (x.yml:7)",
    ]


@pytest.mark.parametrize("environment", ["{name: foo, version: 1}", "{conda_file: conda.yml}"])
def test_an_environment_of_a_steps_own_without_an_image(here: Path, environment: str) -> None:
    write(here, "conda.yml", "dependencies: [python=3.11]\n")
    write(here, "x.yml", f"command: ls\nenvironment: {environment}\n")
    assert problems("x.yml") == [("step x, key environment (x.yml:2)", "an environment without image and build")]


def test_a_flow_in_a_parallel_node_does_not_run(tmp_path: Path) -> None:
    schema = "https://azuremlschemas.azureedge.net/promptflow/latest/Flow.schema.json"
    flow = f"$schema: {schema}\ninputs: {{text: {{type: string}}}}\noutputs: {{}}\nnodes: []\n"
    (tmp_path / "flow.dag.yaml").write_text(flow)
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "x.yml").write_text(
        "type: pipeline\njobs:\n  ask:\n    type: parallel\n    component: flow.dag.yaml\n"
        "    inputs: {data: {type: uri_folder, path: data}, text: '${data.text}'}\n"
    )
    checked = jobs.check(tmp_path / "x.yml", folder=tmp_path / "workspace")
    assert [problem.found for problem in checked.machine] == ["a flow does not run on this machine"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("{path: data}", '{path: "a\\0b"}'), ("{data: {path: data}}", "[[data]]"), ("./train.yml", "x" * 5000)],
    ids=["a null byte", "a list", "a long name"],
)
def test_a_check_of_what_nobody_writes_returns(here: Path, old: str, new: str) -> None:
    write(here, "x.yml", JOB.replace(old, new))
    assert jobs.check("x.yml", folder=here / "workspace").errors
    assert not (here / "workspace").exists()
