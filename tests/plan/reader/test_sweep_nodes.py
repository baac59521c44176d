"""Sweeps are read as the same node from Python and from YAML, and as jobs by themselves."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.plan import codec
from allranks.plan.graph import Graph, Plan, StandIn, Step, Sweep
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output
from allranks.plan.sweep import EarlyTermination, Parameter, Sampling, SweepLimits
from allranks.plan.walk import as_trial
from nested_graphs import bare
from pipeline_files import read, write

TRAIN = """\
type: command
name: train
version: "1"
inputs:
  data: {type: uri_folder}
  lr: {type: number}
  layers: {type: integer, default: 3}
outputs:
  model: {type: uri_folder}
environment: azureml:cpu:1
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2}
command: echo ${{inputs.data}} ${{inputs.lr}} ${{inputs.layers}} ${{outputs.model}}
"""
DSL = """\
from azure.ai.ml import Input, dsl, load_component
from azure.ai.ml.sweep import BanditPolicy, Choice, LogUniform, RandomSamplingAlgorithm

train = load_component(source="./train.yml")


@dsl.pipeline()
def tuning(data: Input(type="uri_folder"), trials: int = 7):
    step = train(data=data, lr=LogUniform(-6, -1))
    tune = step.sweep(
        primary_metric="accuracy",
        goal="Maximize",
        sampling_algorithm=RandomSamplingAlgorithm(seed=3, rule="sobol", logbase=10),
        early_termination_policy=BanditPolicy(slack_factor=0.1, delay_evaluation=2, evaluation_interval=1),
        search_space={"layers": Choice([2, 4])},
    )
    tune.set_limits(max_total_trials=trials, max_concurrent_trials=2, timeout=7200, trial_timeout=600)
    after = train(data=tune.outputs.model, lr=0.5)
    return {"model": tune.outputs.model}


pipeline = tuning(data=Input(type="uri_folder", path="data"))
"""
YAML = """\
type: pipeline
inputs: {data: {type: uri_folder, path: data}, trials: 7}
outputs: {model: {type: uri_folder}}
jobs:
  tune:
    type: sweep
    trial: ./train.yml
    inputs: {data: "${{parent.inputs.data}}"}
    outputs: {model: "${{parent.outputs.model}}"}
    sampling_algorithm: {type: random, seed: 3, rule: sobol, logbase: 10}
    objective: {goal: maximize, primary_metric: accuracy}
    limits: {max_total_trials: 7, max_concurrent_trials: 2, timeout: 7200, trial_timeout: 600}
    early_termination: {type: bandit, slack_factor: 0.1, delay_evaluation: 2, evaluation_interval: 1}
    search_space:
      lr: {type: loguniform, min_value: -6, max_value: -1}
      layers: {type: choice, values: [2, 4]}
  after:
    type: command
    component: ./train.yml
    inputs: {data: "${{parent.jobs.tune.outputs.model}}", lr: 0.5}
"""
STEP = Step(
    "tune",
    "echo ${{inputs.data}} ${{inputs.lr}} ${{inputs.layers}} ${{outputs.model}}",
    inputs=(
        Input("data", "uri_folder", GraphInput("data"), "ro_mount"),
        Input("lr", "number"),
        Input("layers", "integer"),
    ),
    outputs=(Output("model", "uri_folder", "rw_mount"),),
    distribution=PyTorch(2),
    instance_count=2,
    timeout=600,
)
SPACE = (
    Parameter("lr", "loguniform", (-6.0, -1.0)),
    Parameter("layers", "choice", (), (Literal(2), Literal(4))),
)
TUNE = Sweep(
    "tune",
    STEP,
    SPACE,
    "accuracy",
    True,
    Sampling("random", "sobol", 3, 10.0),
    EarlyTermination("bandit", 1, 2, 0.1),
    SweepLimits(7, 2, 7200.0),
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train.yml", TRAIN)
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.mark.parametrize(("name", "text"), [("pipeline.py:pipeline", DSL), ("pipeline.yml", YAML)])
def test_a_node(here: Path, name: str, text: str) -> None:
    write(here, name.partition(":")[0], text)
    plan = read(name)
    tune, after = plan.graph.nodes
    assert isinstance(tune, Sweep)
    described = {"component": "train", "version": "1", "environment": tune.body.environment}
    body = replace(STEP, **described)  # type: ignore[arg-type]
    found = replace(tune, body=replace(tune.body, location=None), location=None, search_space=sorted_(tune))
    assert found == replace(TUNE, body=body)
    assert tune.body.location is not None
    assert plan.graph.needs(after) == ("tune",)
    assert plan.graph.outputs[0].source == NodeOutput("tune", "model")
    assert bare(codec.loads(codec.dumps(plan)).graph) == bare(plan.graph)


def sorted_(tune: Sweep) -> tuple[Parameter, ...]:
    """The search space in the order in which it is expected."""
    order = [each.name for each in SPACE]
    return tuple(sorted(tune.search_space, key=lambda each: order.index(each.name)))


JOB = """\
type: sweep
trial:
  code: src
  command: python train.py ${{inputs.data}} --lr ${{search_space.lr}} --kind ${{search_space.kind}}
  environment: azureml:cpu:1
  environment_variables: {MODE: fast}
  distribution: {type: pytorch, process_count_per_instance: 2}
  resources: {instance_count: 2}
inputs: {data: {type: uri_folder, path: data}}
outputs: {model: {type: uri_folder}}
sampling_algorithm: bayesian
search_space:
  lr: {type: uniform, min_value: 0.1, max_value: 1}
  kind: {type: choice, values: [a, b]}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 4}
"""


def test_a_job(here: Path) -> None:
    write(here, "src/train.py", "")
    write(here, "tune.yml", JOB)
    plan = read("tune.yml")
    (tune,) = plan.graph.nodes
    assert isinstance(tune, Sweep)
    assert tune.body.command == "python train.py ${{inputs.data}} --lr ${{inputs.lr}} --kind ${{inputs.kind}}"
    kinds = {port.name: (port.type, port.value) for port in tune.body.inputs}
    assert kinds == {
        "data": ("uri_folder", GraphInput("data")),
        "lr": ("number", None),
        "kind": ("string", None),
    }
    assert [port.name for port in plan.graph.inputs] == ["data"]
    assert tune.body.code is not None
    assert tune.body.environment_variables == {"MODE": "fast"}
    assert (tune.body.distribution, tune.body.instance_count) == (PyTorch(2), 2)
    assert (tune.sampling, tune.limits) == (Sampling("bayesian", base=math.e), SweepLimits(4))
    assert not tune.maximize
    assert not tune.body.deterministic
    assert [port.name for port in plan.graph.outputs] == ["model"]


def test_a_job_in_python(here: Path) -> None:
    write(
        here,
        "job.py",
        """\
from azure.ai.ml import command
from azure.ai.ml.sweep import Choice
inputs = {"lr": 0.1, "seed": 1}
base = command(command="echo ${{inputs.lr}} ${{inputs.seed}}", environment="azureml:cpu:1", inputs=inputs)
trial = base(lr=Choice([0.1, 0.2]))
job = trial.sweep(sampling_algorithm="grid", primary_metric="loss", goal="minimize")
""",
    )
    plan = read("job.py", {"seed": "5"})
    (tune,) = plan.graph.nodes
    assert isinstance(tune, Sweep)
    assert tune.search_space == (Parameter("lr", "choice", (), (Literal(0.1), Literal(0.2))),)
    assert plan.graph.inputs == (Input("seed", "integer", Literal(5)),)


REFUSED = {
    "a logbase": (
        YAML.replace("logbase: 10", "logbase: 1"),
        "step tune, key sampling_algorithm.logbase (pipeline.yml:10)",
    ),
    "a bound parameter without a distribution": (
        YAML.replace("type: loguniform", "type: gamma"),
        "step tune, key search_space.lr.type (pipeline.yml:15)",
    ),
    "an unknown policy": (
        YAML.replace("type: bandit", "type: gangster"),
        "step tune, key early_termination.type (pipeline.yml:13)",
    ),
}


def test_a_choice_of_mappings_does_not_run_here(here: Path) -> None:
    write(here, "pipeline.yml", YAML.replace("values: [2, 4]", "values: [{a: 1, b: {type: choice, values: [1]}}]"))
    (tune,) = (node for node in read("pipeline.yml").graph.nodes if node.name == "tune")
    assert isinstance(tune, StandIn)
    assert tune.what == "a sweep with a choice of mappings"


@pytest.mark.parametrize(("text", "where"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read(here: Path, text: str, where: str) -> None:
    write(here, "pipeline.yml", text)
    with pytest.raises(InputError) as refused:
        read("pipeline.yml")
    assert [problem.where for problem in refused.value.problems] == [where]


def test_a_trial_is_a_pipeline_of_one_step() -> None:
    (step,) = as_trial(TUNE, 7).graph.nodes
    assert isinstance(step, Step)
    assert step.name == "trial[7]"
    assert step.environment_variables["AZUREML_SWEEP_lr"] == GraphInput("lr")
    plan = Plan("p", Graph((TUNE,)))
    assert codec.loads(codec.dumps(plan)) == plan
