"""Common mistakes that azure-ai-ml accepts: each is found at its key, and what is right is left alone."""

from datetime import date
from pathlib import Path

import pytest

from allranks.api import jobs
from allranks.checks import apply
from allranks.checks.plan import OF_KEYS, findings, launchers
from allranks.checks.plan.scope import of_plan
from allranks.contract.launch import Distribution, Launch
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.errors import Problem
from allranks.plan.environment import Environment, registered
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, Output
from plan_findings import warnings

TODAY = date(2026, 11, 1)
WORKERS = "python t.py --dataloader_num_workers ${{inputs.n}}"
CHECKPOINTS = (Output("checkpoints", "uri_folder", "rw_mount"),)


def found(command: str = "python t.py", **given: object) -> list[tuple[str, str]]:
    """The rule and the key of each warning and piece of advice."""
    plan = Plan("p", Graph((Step("train", command, **given),)))  # type: ignore[arg-type]
    return [
        (problem.rule, problem.where.removeprefix("step train, key "))
        for problem in (*findings(plan, today=TODAY).warnings, *findings(plan, today=TODAY).advice)
    ]


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc-per-node 8 t.py",
        "cd src && OMP_NUM_THREADS=1 torchrun t.py",
        "accelerate launch t.py",
        "python -m torch.distributed.run t.py",
        "python -u -m torch.distributed.launch --use_env t.py",
        "python -m accelerate.commands.launch t.py",
        "/opt/bin/deepspeed --num_gpus 8 t.py",
    ],
)
def test_a_launcher_inside_a_launcher(command: str) -> None:
    assert found(command, distribution=PyTorch(8)) == [("nested-launcher", "command")]
    assert found(command, distribution=PyTorch(1)) == []
    assert found(command, distribution=Mpi(4)) == [("nested-launcher", "command")]


@pytest.mark.parametrize(
    ("command", "processes", "fix"),
    [
        (
            "mpirun -np 8 python t.py",
            1,
            "start the script with python, and set process_count_per_instance to the number of ranks",
        ),
        ("torchrun t.py", 8, "start the script with python: mpirun has started every rank"),
    ],
)
def test_the_fix_of_a_launcher_in_an_mpi_job(command: str, processes: int, fix: str) -> None:
    (problem,) = warnings(Plan("p", Graph((Step("train", command, distribution=Mpi(processes)),))), TODAY)
    assert (problem.rule, problem.fix[: len(fix)]) == ("nested-launcher", fix)


@pytest.mark.parametrize(
    ("command", "distribution", "fixes"),
    [
        ("torchrun t.py", PyTorch(1), ["--node-rank $NODE_RANK"]),
        ("accelerate launch t.py", PyTorch(1), ["--machine_rank $NODE_RANK"]),
        (
            "python -m torch.distributed.run t.py",
            Mpi(1),
            ["distribution pytorch; ", "--node-rank $OMPI_COMM_WORLD_RANK"],
        ),
    ],
)
def test_a_launcher_that_is_not_told_of_the_other_instances(
    command: str, distribution: Distribution, fixes: list[str]
) -> None:
    assert found(command, distribution=distribution) == []
    step = Step("train", command, distribution=distribution, instance_count=2)
    (problem,) = warnings(Plan("p", Graph((step,))), TODAY)
    assert problem.rule == "instances-apart"
    assert all(fix in problem.fix for fix in fixes)
    for option in ("--node_rank $OMPI_COMM_WORLD_RANK", "--rdzv-endpoint a:1", "--config_file a.yaml"):
        joined = command.replace(" t.py", f" {option} t.py")
        assert found(joined, distribution=distribution, instance_count=2) == []


def test_a_launch_per_node_in_an_mpi_job() -> None:
    """Azure ML's guide: one process per instance, whose OMPI_COMM_WORLD_RANK is the rank of the instance."""
    command = "torchrun --nnodes 2 --node-rank $OMPI_COMM_WORLD_RANK --master-addr ${AZ_BATCH_MASTER_NODE%:*} t.py"
    assert found(command, distribution=Mpi(1), instance_count=2) == []
    assert found("torchrun --nproc-per-node 8 t.py", distribution=Mpi(1)) == []
    assert found("mpirun -np 8 python t.py", distribution=Mpi(1)) == [("nested-launcher", "command")]


@pytest.mark.parametrize(
    ("command", "processes", "fixes"),
    [
        ("python t.py --node-rank $NODE_RANK", 1, ["$OMPI_COMM_WORLD_RANK,"]),
        ('python t.py --node-rank "${NODE_RANK}"', 4, ["$((OMPI_COMM_WORLD_RANK / 4)),"]),
        ("python t.py $RANK $WORLD_SIZE", 4, ["$OMPI_COMM_WORLD_RANK,", "$OMPI_COMM_WORLD_SIZE,"]),
        ("python t.py ${MASTER_ADDR}:$MASTER_PORT", 4, ["${AZ_BATCH_MASTER_NODE%:*},", "a free port"]),
        ("python t.py --node_rank=$OMPI_COMM_WORLD_NODE_RANK", 1, ["write $OMPI_COMM_WORLD_RANK"]),
        ("export NODE_RANK=$OMPI_COMM_WORLD_RANK && python t.py", 4, ["write $((OMPI_COMM_WORLD_RANK / 4))"]),
        ("export NODE_RANK=$OMPI_COMM_WORLD_RANK && python t.py $NODE_RANK", 1, []),
        ("python t.py --node-rank $((OMPI_COMM_WORLD_RANK / 4))", 4, []),
        ("python t.py ${MASTER_PORT:-6105} '$RANK' $RANKS \\$RANK", 4, []),
        ("MASTER_ADDR=a; python t.py $MASTER_ADDR", 4, []),
        (". ./env.sh && python t.py $MASTER_ADDR", 4, []),
        ("python t.py $OMPI_COMM_WORLD_RANK $AZUREML_CR_NODE_RANK $HOME", 4, []),
    ],
)
def test_variables_that_an_mpi_job_does_not_have(command: str, processes: int, fixes: list[str]) -> None:
    def of(distribution: Distribution, **given: object) -> list[Problem]:
        step = Step("train", command, distribution=distribution, instance_count=2, **given)  # type: ignore[arg-type]
        return list(warnings(Plan("p", Graph((step,))), TODAY))

    problems = of(Mpi(processes))
    assert [problem.rule for problem in problems] == ["mpi-variable"] * len(fixes)
    assert all(fix in problem.fix for fix, problem in zip(fixes, problems, strict=True))
    assert [problem for problem in of(PyTorch(processes)) if problem.rule != "rank-variable"] == []
    own = dict.fromkeys(launchers.PYTORCH_ONLY, "1")
    of_own = [each for each in of(Mpi(processes), environment_variables=own) if each.rule == "mpi-variable"]
    assert len(of_own) == sum(fix.startswith("write") for fix in fixes)


def test_those_are_the_variables_of_a_pytorch_job_that_an_mpi_job_lacks() -> None:
    def names(distribution: Distribution) -> set[str]:
        launch = Launch(distribution, ("10.0.0.4", "10.0.0.5"), ("a", "b"))
        (process, *_) = distribution.processes(2)
        return set(distribution.environment(launch, process))

    assert set(launchers.PYTORCH_ONLY) == names(PyTorch(4)) - names(Mpi(4))


@pytest.mark.parametrize(
    "command",
    [
        "python t.py --deepspeed ds.json",
        "pip install deepspeed torchrun && python t.py",
        "accelerate config && python t.py",
        "python -m torchrun_report",
        "echo 'torchrun t.py'",
    ],
)
def test_what_is_no_launcher(command: str) -> None:
    assert found(command, distribution=PyTorch(8)) == []


def test_the_launcher_of_deepspeed_needs_a_hostfile() -> None:
    command = "deepspeed t.py"
    assert found(command, distribution=PyTorch(1), instance_count=2) == [("deepspeed-launcher", "command")]
    assert found(command, instance_count=1) == []


def test_one_process_on_eight_gpus() -> None:
    size = {"instance_type": "Standard_ND96asr_v4", "distribution": PyTorch(1)}
    assert found(**size) == [("processes-per-gpu", "distribution.process_count_per_instance")]
    assert found("torchrun --nproc-per-node 8 t.py", **size) == []
    assert found(**size | {"distribution": PyTorch(8)}) == []


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("torchrun t.py --local-rank $LOCAL_RANK", True),
        ('torchrun t.py --rank "${RANK:-0}"', True),
        ("accelerate launch t.py > log_$RANK", True),
        ("torchrun t.py --format '$RANK'", False),
        ("torchrun t.py --cost \\$RANK", False),
        ("torchrun --node-rank $NODE_RANK t.py $RANKS", False),
        ("python t.py --local-rank $LOCAL_RANK", False),
    ],
)
def test_a_rank_that_is_expanded_once_per_instance(command: str, expected: bool) -> None:
    rules = [rule for rule, _ in found(command, distribution=PyTorch(1))]
    assert rules == (["rank-expanded-once"] if expected else [])


def test_the_same_in_a_component_that_starts_its_ranks_itself() -> None:
    given = {"command": "python start.py $RANK", "tags": {"launch": "per node"}}
    assert found(**given) == [("rank-expanded-once", "command")]


def test_workers_of_data_loaders_in_the_default_shared_memory() -> None:
    eight = [("loader-workers", "resources.shm_size")]
    workers = (Input("n", "integer", Literal(2)),)
    assert found("python t.py --num-workers=8") == eight
    assert found("python t.py --num-workers=8", shm_size=64 << 30) == []
    assert found("python t.py --num_workers 2", distribution=PyTorch(4)) == eight
    assert found("python t.py --num_workers 7") == []
    assert found(WORKERS, distribution=Mpi(4), inputs=workers) == eight
    assert found(WORKERS, distribution=Mpi(3), inputs=workers) == []
    assert found(f"python t.py --num-workers {'9' * 30}") == []


def test_workers_that_an_input_of_the_pipeline_sets() -> None:
    step = Step("train", WORKERS, inputs=(Input("n", "integer", GraphInput("workers")),))
    plan = Plan("p", Graph((step,), inputs=(Input("workers", "integer", Literal(16)),)))
    assert [warning.rule for warning in warnings(plan, TODAY)] == ["loader-workers"]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (Environment(image="pytorch/pytorch"), ["latest-image"]),
        (Environment(image="reg.io:5000/a/b:latest"), ["latest-image"]),
        (Environment(image="reg.io:5000/a/b:2.8"), []),
        (Environment(image="a/b@sha256:12"), []),
        (registered("azureml:torch@latest"), ["latest-label"]),
        (registered("azureml://registries/azureml/environments/torch/labels/latest"), ["latest-label"]),
        (registered("azureml:torch:3"), []),
    ],
)
def test_an_environment_that_moves(environment: Environment, expected: list[str]) -> None:
    assert [rule for rule, _ in found(environment=environment)] == expected


def test_an_environment_of_several_steps_is_one_finding() -> None:
    image, label = Environment(image="pytorch/pytorch"), registered("azureml:torch@latest")
    given = {"a": image, "b": label, "c": image, "d": label, "e": image, "f": Environment(image="python")}
    plan = Plan("p", Graph(tuple(Step(name, "ls", environment=each) for name, each in given.items())))
    assert [(problem.where, problem.found) for problem in warnings(plan, TODAY)] == [
        ("step a, key environment", "image pytorch/pytorch, also of steps c, e"),
        ("step f, key environment", "image python"),
    ]
    assert [problem.found for problem in findings(plan, today=TODAY).advice] == ["azureml:torch@latest, also of step d"]


def test_spot_without_checkpoints() -> None:
    key = "queue_settings.job_tier"
    assert found(job_tier="Spot") == [("spot-without-checkpoints", key)]
    assert found(job_tier="standard") == []
    assert found(job_tier="spot", outputs=CHECKPOINTS) == []
    assert found("python t.py --resume ${{outputs.model}}", job_tier="spot") == []
    uploaded = (Output("checkpoints", "uri_folder", "upload"),)
    assert found(job_tier="spot", outputs=uploaded) == [("spot-without-checkpoints", "outputs.checkpoints")]


PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:cpu}
jobs:
  train:
    type: command
    component: component.yaml
    queue_settings: {job_tier: Spot}
    distribution: {type: pytorch, process_count_per_instance: 4}
"""
COMPONENT = """\
name: train
version: "1"
type: command
environment: azureml:torch:1
command: torchrun train.py
"""


def checked(folder: Path, pipeline: str = PIPELINE, component: str = COMPONENT) -> list[Problem]:
    (folder / "component.yaml").write_text(component)
    (folder / "pipeline.yml").write_text(pipeline)
    result = jobs.check(folder / "pipeline.yml", folder=folder / "workspace")
    assert result.plan is not None, result
    return list(result.warnings)


def test_comments_in_the_pipeline_and_in_the_components_file_ignore_them(tmp_path: Path) -> None:
    nested, spot = checked(tmp_path)
    assert (nested.rule, spot.rule) == ("nested-launcher", "spot-without-checkpoints")
    assert spot.where.endswith("pipeline.yml:7)")
    on_the_line = PIPELINE.replace("Spot}", "Spot}  # allranks: ignore spot-without-checkpoints")
    assert checked(tmp_path, pipeline=on_the_line) == [nested]
    at_the_command = COMPONENT.replace("train.py", "train.py  # allranks: ignore nested-launcher")
    assert checked(tmp_path, component=at_the_command) == [spot]
    of_the_file = f"# allranks: ignore spot-without-checkpoints, nested-launcher\n{COMPONENT}"
    assert checked(tmp_path, component=of_the_file) == []


@pytest.mark.parametrize("place", ["component", "job"])
def test_a_binding_as_a_number_of_instances(tmp_path: Path, place: str) -> None:
    """A component and an inline step refuse it; a step that uses a component takes it."""
    resources = "resources: {instance_count: '${{%s.n}}'}\n"
    if place == "component":
        from allranks.checks.component import check

        (tmp_path / "component.yaml").write_text(COMPONENT + resources % "inputs" + "inputs: {n: integer}\n")
        problems = check([tmp_path / "component.yaml"]).errors
    else:
        inline = "type: pipeline\ninputs: {n: 2}\njobs:\n  a:\n    command: echo\n    environment: azureml:x:1\n    "
        (tmp_path / "job.yml").write_text(inline + resources % "parent.inputs")
        problems = jobs.check(tmp_path / "job.yml", folder=tmp_path / "workspace").problems
    (problem,) = [problem for problem in problems if problem.rule == "count-binding"]
    assert "the step of a pipeline that uses the component" in problem.fix
    bound = (
        PIPELINE.replace("type: pipeline\n", "type: pipeline\ninputs: {n: 2}\n") + f"    {resources}" % "parent.inputs"
    )
    assert [warning.rule for warning in checked(tmp_path, pipeline=bound)] == [
        "nested-launcher",
        "spot-without-checkpoints",
    ]


def test_each_rule_has_a_test_here() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    assert [code for _, code in OF_KEYS[:-1] if code not in text and code != "variable-binding"] == []
    step = Step("a", "true", environment_variables={"A": "${{outputs.x}}"})
    (problem,) = apply(OF_KEYS, of_plan(Plan("p", Graph((step,)))), step)
    assert problem.rule == "variable-binding"
