"""The file that a launch writes for Azure ML: it gives the plan of the launch, for every distribution, and runs."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.history.records import Status
from allranks.local import machine
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Plan
from allranks.plan.reader import read_plan
from allranks.project.script_job import ENVIRONMENTS, ScriptJob, script_job
from allranks.project.script_plan import emit, plan_of
from allranks.workspace import Workspace
from allranks_command import content

VENVS = Path(__file__).parents[2] / ".venvs"
SUM = """\
import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", "--local-rank")  # which DeepSpeed's launcher gives
parser.add_argument("--add", type=int)
parser.add_argument("--data")
parser.add_argument("--sums")
args = parser.parse_args()
number = args.add + int(Path(args.data, "number").read_text())
"""
TORCH = """
import torch
from torch import distributed

distributed.init_process_group("gloo")
total = torch.tensor([number])
distributed.all_reduce(total)
Path(args.sums, str(distributed.get_rank())).write_text(str(int(total)))
distributed.destroy_process_group()
"""
ACCELERATE = """
import torch
from accelerate import Accelerator

accelerator = Accelerator()
total = accelerator.reduce(torch.tensor(number), reduction="sum")
Path(args.sums, str(accelerator.process_index)).write_text(str(int(total)))
accelerator.end_training()
"""
MPI = """
from mpi4py import MPI

world = MPI.COMM_WORLD
Path(args.sums, str(world.rank)).write_text(str(world.allreduce(number)))
"""
TENSORFLOW = """
import json
import os

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def reduce():
    value = strategy.run(lambda: tf.constant(number))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)


index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
Path(args.sums, str(index)).write_text(str(int(reduce())))
"""
RAY = """
import ray

ray.init()
task = ray.remote(num_cpus=0.1)(lambda: number)
Path(args.sums, "0").write_text(str(sum(ray.get([task.remote() for _ in ray.nodes()]))))
"""
SCRIPTS = {"accelerate": ACCELERATE, "mpi": MPI, "tensorflow": TENSORFLOW, "ray": RAY}
ONE_EACH = ("tensorflow", "ray")
DEAR = ("accelerate", "deepspeed", "ray", "tensorflow")
"""Those that import much on each rank: other tests start these launches."""
LIBRARIES = {"accelerate": "accelerate", "deepspeed": "deepspeed", "mpi": "mpi4py", "ray": "ray"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/number").write_text("1")
    (tmp_path / ".venvs").symlink_to(VENVS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job_of(distribution: str, **options: object) -> ScriptJob:
    script = Path("src", "sum.py")
    script.parent.mkdir(exist_ok=True)
    script.write_text(SUM + SCRIPTS.get(distribution, TORCH))
    given = {"inputs": {"data": "data"}, "outputs": ["sums"], "variables": {"A": "b 'c'"}, **options}
    return script_job(
        [str(script), "--add", "2"],
        layout="2x1" if distribution in ONE_EACH else "2x2",
        distribution=distribution,
        **given,  # type: ignore[arg-type]
    )


def plain(plan: Plan) -> Plan:
    """The plan without what is of its file: the job's name, where it is, and the path of the source."""
    (step,) = plan.graph.nodes
    (output,) = plan.graph.outputs
    step = replace(step, name="step", location=None)
    output = replace(output, source=replace(output.source, node="step"))
    return replace(plan, name="plan", source="", graph=replace(plan.graph, nodes=(step,), outputs=(output,)))


@pytest.mark.parametrize("distribution", ENVIRONMENTS)
@pytest.mark.parametrize("options", [{}, {"size": "ND96asr_v4"}, {"environment": "azureml:own:3", "outputs": ["x"]}])
def test_the_file_gives_the_plan_of_the_launch(
    distribution: str, options: dict[str, object], folder: Path, workspace: Workspace
) -> None:
    job = job_of(distribution, **options)
    emit(job, folder / "job.yml")
    read = read_plan("job.yml", {}, folder / "snapshots")
    assert plain(read) == plain(plan_of(job, folder / "snapshots"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "distribution", [pytest.param(each, marks=[pytest.mark.recipe] * (each in DEAR)) for each in ENVIRONMENTS]
)
def test_the_file_runs(distribution: str, folder: Path, workspace: Workspace) -> None:
    if distribution in LIBRARIES:
        pytest.importorskip(LIBRARIES[distribution])
    emit(job_of(distribution), folder / "job.yml")
    plan = read_plan("job.yml", {}, folder / "snapshots")
    if lacking := machine.problems(plan):
        pytest.skip(str(lacking[0]))
    record = run(plan, workspace, Options(instances="loopback", track=False))
    assert record.status is Status.COMPLETED, record.verdict
    (output,) = record.steps[0].outputs
    ranks = {"ray": 1, "tensorflow": 2}.get(distribution, 4)
    terms = 2 if distribution in ONE_EACH else 4
    assert content(Path(output.path)) == {str(rank): str(3 * terms).encode() for rank in range(ranks)}


def test_a_file_lies_where_it_likes(folder: Path, workspace: Workspace) -> None:
    """Its paths are relative to it, and the environment is copied once."""
    job = job_of("pytorch", environment="cpu")
    (folder / "jobs").mkdir()
    assert sorted(emit(job, folder / "jobs/job.yml"))[-2:] == ["environments/cpu/requirements.txt", "job.yml"]
    dockerfile = folder / "jobs/environments/cpu/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "RUN echo changed\n")
    assert emit(job, folder / "jobs/again.yml") == ("again.yml",)
    moved = folder / "elsewhere"
    shutil.move(folder / "jobs", moved)
    for name in ("job.yml", "again.yml"):
        assert str(folder.parent) not in (moved / name).read_text()
        (step,) = read_plan(str(moved / name), {}, folder / "snapshots").graph.nodes
        assert Path(step.environment.folder) == moved / "environments/cpu"  # type: ignore[union-attr]
        assert step.code == plan_of(job, folder / "snapshots").graph.nodes[0].code  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["3d", "my script's", "тест"])
def test_any_name_of_a_script(name: str, folder: Path, workspace: Workspace) -> None:
    script = folder / f"{name}.py"
    script.write_text("")
    job = script_job([str(script)], inputs={"job": "data"}, outputs=["pipeline"])
    emit(job, folder / "job.yml")
    assert plain(read_plan("job.yml", {}, folder / "s")) == plain(plan_of(job, folder / "s"))


def test_an_environment_of_a_file(folder: Path, workspace: Workspace) -> None:
    (folder / "own.yml").write_text("name: own\nimage: python:3.12\n")
    job = job_of("pytorch", environment="own.yml")
    emit(job, folder / "job.yml")
    for plan in (read_plan("job.yml", {}, folder / "snapshots"), plan_of(job, folder / "snapshots")):
        (step,) = plan.graph.nodes
        assert (step.environment.name, step.environment.image) == ("own", "python:3.12")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("data/number", "it is not YAML"),
        ("job.yml", "the file exists"),
        ("gone/job.yml", "there is no such folder"),
    ],
)
def test_nothing_is_written_where_a_file_cannot_be(name: str, said: str, folder: Path) -> None:
    job = job_of("pytorch")
    (folder / "job.yml").touch()
    before = content(folder)
    with pytest.raises(InputError, match=said):
        emit(job, Path(name))
    assert content(folder) == before
