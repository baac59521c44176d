"""The job of a script, from what a user types."""

import shlex
from pathlib import Path

import pytest

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import InputError
from allranks.project.script_job import ScriptJob, script_job

READS_VARIABLE = "import os\nprint(os.environ['AZURE_ML_INPUT_data'])\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"train.py": "", "src/steps/fit.py": "", "reads.py": READS_VARIABLE, "go.sh": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(command: str, **options: object) -> ScriptJob:
    return script_job(shlex.split(command), **options)  # type: ignore[arg-type]


TORCHRUN = "torchrun --nnodes 2 --node-rank $NODE_RANK --nproc-per-node 4 --master-addr $MASTER_ADDR --master-port "


@pytest.mark.parametrize(
    ("command", "options", "instances", "distribution", "expected"),
    [
        ("train.py --x 'a b'", {}, 1, PyTorch(1), "python train.py --x 'a b'"),
        ("train.py", {"layout": "2x4"}, 2, PyTorch(4), "python train.py"),
        ("train.py", {"size": "ND96asr_v4"}, 1, PyTorch(8), "python train.py"),
        ("go.sh", {"layout": "1x2"}, 1, PyTorch(2), "bash go.sh"),
        ("train.py", {"layout": "2x4", "distribution": "mpi"}, 2, Mpi(4), "python train.py"),
        ("train.py", {"layout": "3x1", "distribution": "tensorflow"}, 3, TensorFlow(3), "python train.py"),
        ("train.py", {"layout": "2x1", "distribution": "ray"}, 2, Ray(), "python train.py"),
        (
            "train.py -n 1",
            {"layout": "2x4", "distribution": "torchrun"},
            2,
            PyTorch(1),
            f"{TORCHRUN}$MASTER_PORT train.py -n 1",
        ),
        (
            "torchrun --nproc-per-node 4 --nnodes 2 --tee 3 train.py",
            {},
            2,
            PyTorch(1),
            f"{TORCHRUN}$MASTER_PORT --tee 3 train.py",
        ),
        ("mpirun -n 8 -N 4 python train.py", {"layout": "2x4"}, 2, Mpi(4), "python train.py"),
        ("mpirun -n 8 train.py", {}, 1, Mpi(8), "python train.py"),
        ("train.py", {"layout": "4"}, 1, PyTorch(4), "python train.py"),
    ],
)
def test_a_script_becomes_a_command(
    command: str, options: dict[str, object], instances: int, distribution: Distribution, expected: str
) -> None:
    job = made(command, **options)
    assert (job.instance_count, job.distribution, job.command) == (instances, distribution, expected)


@pytest.mark.parametrize("distribution", ["accelerate", "deepspeed"])
def test_a_launcher_of_all_instances_gets_the_layout_of_its_options(distribution: str) -> None:
    options = {"accelerate": "--num_machines 2 --num_processes 6", "deepspeed": "--num_nodes 2 --num_gpus 3"}
    program = {"accelerate": "accelerate launch"}.get(distribution, distribution)
    pasted = made(f"{program} {options[distribution]} train.py")
    assert pasted == made("train.py", layout="2x3", distribution=distribution)
    assert (pasted.instance_count, pasted.distribution) == (2, PyTorch(1))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("train.py", "--data ${{inputs.data}} --out ${{outputs.out}}"),
        ("train.py --in={data}/x", "--in=${{inputs.data}}/x --out ${{outputs.out}}"),
        ("train.py '${{outputs.out}}' '{data}{out}'", "${{outputs.out}} ${{inputs.data}}${{outputs.out}}"),
        ("""train.py '{"data": {x}}' {out}""", """'{"data": {x}}' ${{outputs.out}} --data ${{inputs.data}}"""),
        ("train.py ''", "'' --data ${{inputs.data}} --out ${{outputs.out}}"),
        ("reads.py", "--out ${{outputs.out}}"),
    ],
)
def test_the_script_gets_the_paths_of_inputs_and_outputs(command: str, expected: str, folder: Path) -> None:
    job = made(command, inputs={"data": "data"}, outputs=["out"])
    assert job.command == f"python {command.split()[0]} {expected}"
    assert (job.inputs, job.outputs) == ({"data": str(folder / "data")}, ("out",))


@pytest.mark.parametrize("script", ["src/steps/fit.py", "steps/fit.py"])
def test_the_script_may_be_named_from_its_code_on(script: str, folder: Path) -> None:
    job = made(script, code=Path("src"))
    assert (job.code, job.script, job.command) == (
        folder / "src",
        folder / "src/steps/fit.py",
        "python steps/fit.py",
    )


def test_the_size_and_the_variables() -> None:
    job = made("A=1 B=1 train.py", size="nd96asr_v4", layout="2x4", variables={"B": "2"})
    assert job.size == "Standard_ND96asr_v4"
    assert job.variables == {"ALLRANKS_SIZE": "Standard_ND96asr_v4", "A": "1", "B": "2"}


def test_the_environment(folder: Path) -> None:
    file = folder / "environment.yml"
    file.write_text("name: own\nimage: python:3.12\n")
    assert Path(made("train.py", environment="horovod").environment).name == "horovod"
    assert Path(made("deepspeed --num_gpus 1 train.py").environment).name == "deepspeed"
    assert made("train.py", environment="environment.yml").environment == file
    assert made("train.py", environment="azureml:own:3").environment == "azureml:own:3"


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        ("trian.py", {}, r"there is no such file[^~]*did you mean train\.py"),
        ("src", {}, "it is a folder"),
        ("train.py", {"layout": "x2"}, "-j x2: it is not a layout"),
        ("train.py", {"layout": "0x4"}, "-j 0x4: it is not a layout"),
        ("train.py", {"layout": "2x4 "}, "it is not a layout"),
        ("train.py", {"distribution": "torch"}, "--distribution torch: it is unknown"),
        ("train.py", {"distribution": "tensorflow", "layout": "2x2"}, "an instance has one worker\n  expected: 2x1"),
        ("train.py", {"distribution": "ray", "layout": "2x2"}, "expected: 2x1"),
        ("go.sh", {"distribution": "torchrun"}, "go.sh: torchrun starts it with Python"),
        ("torchrun --nproc-per-node 4 train.py", {"layout": "2x2"}, "--nproc-per-node 4, and -j 2x2 says 2"),
        ("torchrun --nnodes 3 train.py", {"layout": "2x2"}, "--nnodes 3, and -j 2x2 says 2"),
        ("mpirun -n 8 train.py", {"layout": "2x2"}, "-n 8, and -j 2x2 says 4"),
        ("mpirun -n 7 -N 2 train.py", {}, "-n 7, and its other options say 6"),
        ("accelerate launch --num_machines 2 --num_processes 7 train.py", {}, "--num_processes 7, and its other"),
        ("torchrun train.py", {"distribution": "mpi"}, "torchrun starts the processes, which is"),
        ("deepspeed train.py", {}, "one process for each GPU"),
        ("train.py", {"size": "ND96asr_v4", "layout": "1x9"}, "9 processes on each Standard_ND96asr_v4"),
        ("train.py", {"size": "ND96asr_v9"}, "--size: no size 'ND96asr_v9'"),
        ("train.py", {"code": Path("src")}, "src/train.py: there is no such file"),
        ("../x/train.py", {"code": Path("gone")}, "--code gone: there is no such folder"),
        ("train.py", {"inputs": {"data": "gone"}}, "--input data=gone: there is no such folder"),
        ("train.py", {"inputs": {"my-data": "data"}}, "'my-data' is not a name"),
        ("train.py", {"outputs": ["class"]}, "'class' is not a name"),
        ("train.py", {"inputs": {"data": "data"}, "outputs": ["data"]}, "the name is repeated"),
        ("train.py", {"environment": "pytroch"}, "it is unknown[^~]*did you mean pytorch"),
        ("train.py", {"environment": "gone.yml"}, "gone.yml: there is no such file"),
    ],
)
def test_what_cannot_be_a_job_is_refused(command: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as raised:
        made(command, **options)
    assert len(raised.value.problems) == 1


def test_a_script_outside_of_the_code_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"--code src: it does not contain train\.py"):
        made(str(folder / "train.py"), code=Path("src"))
