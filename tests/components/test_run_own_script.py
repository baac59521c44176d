"""run_pytorch and its variants: programs of somebody's own, started as real processes by every launch."""

import os
import shlex
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from component_processes import COMPONENTS, Ended, clean, folder_of, run
from launches import BIN, MPIRUN, by_mpirun, by_platform, environment

import bounded
from allranks.contract.launch import Distribution
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.contract.tensorflow import TensorFlow
from allranks.contract.variables import JOIN_SECONDS
from allranks.errors import InputError
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Literal
from allranks.sdk.session import session
from allranks_steps import own_script
from free_ports import free_port
from plan_findings import check as check_plan

Importer = Callable[[str, str], Any]

SCRIPTS = Path(__file__).parent / "own_scripts"
RAY = BIN / "ray"


def command(launch: str, folder: Path, script: str = "sum_ranks.py", *options: str) -> list[str]:
    spec = "component.yaml" if launch == "pytorch" else f"run_{launch}/component.yaml"
    outputs = [f"--{name}={folder / name}" for name in ("results", "model", "checkpoints", "metrics")]
    places = ["--spec", spec, "--launch", launch, "--source", str(SCRIPTS), "--script", script, *outputs]
    return [sys.executable, str(COMPONENTS / "own_script/run_pytorch/start.py"), *places, *options]


def check(ended: Ended, folder: Path, local_ranks: list[int], arguments: str = "") -> None:
    """Every rank took part in the sum; {local} in the arguments is its own local rank."""
    assert set(ended.codes) == {0}, ended
    world = len(local_ranks)
    total = world * (world + 1) // 2
    assert places(folder) == [
        f"{rank} of {world}, local {local}: {total}{arguments.format(local=local)}"
        for rank, local in enumerate(local_ranks)
    ]


def places(folder: Path) -> list[str]:
    """Return what each rank of place.py has written."""
    return [file.read_text() for file in sorted((folder / "results").iterdir())]


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, ["run_pytorch"])


@pytest.mark.slow
def test_a_script_in_every_process_of_the_platform(tmp_path: Path, variables: dict[str, str]) -> None:
    started = command("pytorch", tmp_path, "sum_ranks.py", "--arguments", '--name "two words" --local $LOCAL_RANK $$')
    ended = by_platform(PyTorch(2), 1, started, tmp_path, variables)
    check(ended, tmp_path, [0, 1], " --name two words --local {local} $")


@pytest.mark.recipe
def test_torchrun_starts_the_ranks_of_two_instances_again_after_a_failure(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    options = ["--min_instances", "1", "--max_restarts", "1", "--arguments", "$LOCAL_RANK ${AZURE_ML_OUTPUT_results}"]
    started = command("torchrun", tmp_path, "restarted.py", *options)
    ended = by_platform(PyTorch(1), 2, started, tmp_path, variables)
    assert "failed once" in "".join(ended.errors)
    check(ended, tmp_path, [0, 0], f" {{local}} {tmp_path / 'results'}")


@pytest.mark.recipe
def test_accelerate_starts_the_ranks_of_two_instances(tmp_path: Path, variables: dict[str, str]) -> None:
    pytest.importorskip("accelerate")
    arguments = "$ACCELERATE_MIXED_PRECISION $ACCELERATE_USE_CPU"
    started = command("accelerate", tmp_path, "place.py", "--arguments", arguments)
    ended = by_platform(PyTorch(1), 2, started, tmp_path, variables)
    assert ended.codes == [0, 0], ended
    assert places(tmp_path) == ["0 of 2 no true", "1 of 2 no true"]


@pytest.mark.slow
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun here: pip install 'allranks[mpi]'")
def test_mpirun_starts_scripts_and_other_programs(tmp_path: Path, variables: dict[str, str]) -> None:
    check(by_mpirun(2, command("mpi", tmp_path), tmp_path, variables), tmp_path, [0, 1])
    options = ["--arguments", "$OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE"]
    ended = by_mpirun(2, command("mpi", tmp_path, "place.sh", *options), tmp_path, variables)
    assert ended.codes == [0], ended
    assert [(tmp_path / f"results.{rank}").read_text() for rank in range(2)] == ["0 of 2\n", "1 of 2\n"]


@pytest.mark.slow
def test_the_workers_of_tensorflow(tmp_path: Path, variables: dict[str, str]) -> None:
    """How TensorFlow itself trains under a TF_CONFIG, test_train_tensorflow.py shows."""
    started = command("tensorflow", tmp_path, "place.py", "--arguments", "$AZUREML_NODE_COUNT")
    ended = by_platform(TensorFlow(2), 2, started, tmp_path, variables)
    assert ended.codes == [0, 0], ended
    assert places(tmp_path) == ["0 of 2 2", "1 of 2 2"]


@pytest.mark.slow
@pytest.mark.skipif(not RAY.exists(), reason="no Ray here: pip install 'allranks[ray]'")
def test_the_script_runs_when_the_ray_cluster_is_whole(tmp_path: Path, variables: dict[str, str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    variables = variables | {"RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp", ignore_cleanup_errors=True) as short:
        options = ["--head", "--node-ip-address", "127.0.0.1", "--port", address.partition(":")[2], "--num-cpus", "1"]
        options += [
            "--include-dashboard",
            "false",
            "--object-store-memory",
            "100000000",
            "--temp-dir",
            short,
            "--block",
        ]
        with (tmp_path / "head.log").open("wb") as log:
            head = bounded.Popen([str(RAY), "start", *options], env=variables, stdout=log, stderr=log)
        try:
            started = command("ray", tmp_path, "on_ray.py", "--join_seconds", "100")
            ended = run([started], [variables | {"RAY_ADDRESS": address}], tmp_path)
            of_two = {"AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "0"}
            of_two |= {"AZ_BATCH_HOST_LIST": "127.0.0.1,127.0.0.9", "RAY_ADDRESS": address}
            alone = run([command("ray", tmp_path, "on_ray.py", "--join_seconds", "1")], [variables | of_two], tmp_path)
        finally:
            head.terminate()
            head.wait()
    assert ended.codes == [0], (ended, (tmp_path / "head.log").read_text())
    assert (tmp_path / "results").read_text() == "[0, 1, 4, 9]"
    assert alone.codes == [1]
    missing = "1 of 2 instances have joined the Ray cluster in 1 s: instance 1 (127.0.0.9) did not"
    assert missing in alone.errors[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launch", "distribution", "missing"),
    [
        ("pytorch", PyTorch(2), "instance 2 (127.0.0.4), rank 4, 5 did not connect within"),
        ("tensorflow", TensorFlow(3), "worker 2 at 127.0.0.4:"),
    ],
)
def test_a_missing_instance_is_named(
    launch: str, distribution: Distribution, missing: str, tmp_path: Path, variables: dict[str, str]
) -> None:
    path = os.pathsep.join([variables["PYTHONPATH"], str(COMPONENTS.parent / "src"), str(COMPONENTS / "shared")])
    variables |= {"PYTHONPATH": path, JOIN_SECONDS: "2"}
    ended = by_platform(distribution, 3, command(launch, tmp_path, "sum_ranks.py"), tmp_path, variables, missing=2)
    assert set(ended.codes) == {1}, ended
    assert missing in ended.errors[0]
    assert not (tmp_path / "results").exists()


@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun here: pip install 'allranks[mpi]'")
def test_a_world_of_mpi_that_is_smaller_than_declared(tmp_path: Path, variables: dict[str, str]) -> None:
    """As Open MPI 5 starts it from the variables for 4: on one of the instances."""
    ended = by_mpirun(2, command("mpi", tmp_path), tmp_path, variables | {"AZUREML_NODE_COUNT": "3"})
    assert ended.codes != [0]
    assert "2 ranks on 1 of the job's 3 instances (launcher mpi)" in ended.errors[0]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("launch", ["pytorch", "torchrun"])
def test_a_world_of_one_instance_of_two(launch: str, tmp_path: Path, variables: dict[str, str]) -> None:
    alone = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": "0"}
    alone |= {"MASTER_ADDR": "127.0.0.1", "AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "0"}
    ended = run([command(launch, tmp_path)], [variables | alone], tmp_path)
    assert ended.codes == [2]
    assert "1 rank on 1 of the job's 2 instances (launcher pytorch)" in ended.errors[0]
    assert not (tmp_path / "results").exists()


def test_what_is_no_script_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command_line(**changes: object) -> list[str]:
        given = {"source": SCRIPTS, "script": "sum_ranks.py", "arguments": None, **changes}
        return own_script.command_line(Namespace(**given))

    expected = r"train\.py, which is not in the source\n  expected: one of on_ray\.py, place\.py"
    with pytest.raises(InputError, match=expected):
        command_line(script="train.py")
    with pytest.raises(InputError, match="which is not in the source"):
        command_line(script="../conftest.py")
    with pytest.raises(InputError, match="No closing quotation"):
        command_line(arguments="--name 'two")
    assert command_line(script="hostname") == [shutil.which("hostname")]
    monkeypatch.chdir(SCRIPTS)
    assert command_line(source=None) == [str(SCRIPTS / "sum_ranks.py")]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="not in the code of the node"):
        command_line(source=None)
    with pytest.raises(InputError, match=r"\$LOKAL_RANK, and the process has no variable LOKAL_RANK"):
        own_script.expanded(["--x=$LOKAL_RANK"], {"LOCAL_RANK": "1"})


def test_a_program_of_a_mount_that_is_not_executable(tmp_path: Path, variables: dict[str, str]) -> None:
    program = tmp_path / "solver"
    shutil.copyfile(shutil.which("printenv") or "", program)
    rank = [sys.executable, str(COMPONENTS / "own_script/run_pytorch/rank.py")]
    ended = run([[*rank, str(program), "${WHICH}"]], [{**variables, "WHICH": "PLACE", "PLACE": "here"}], tmp_path)
    assert (ended.codes, ended.output) == ([0], "here\n"), ended
    program.write_text("not a program")
    ended = run([[*rank, str(program)]], [variables], tmp_path)
    assert ended.codes == [2]
    assert "neither a script with #! nor a Linux program" in ended.errors[0]


@pytest.mark.parametrize("launch", ["torchrun", "accelerate", "deepspeed"])
def test_a_launcher_where_the_platform_starts_all_is_refused(
    launch: str, code: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    launchers = code("run_pytorch", "launchers")
    env = RankEnv(world_size=4, local_world_size=2, instance_count=2, launcher="pytorch")
    monkeypatch.setattr(launchers, "detect", lambda: env)
    with pytest.raises(InputError, match="2 processes on each instance"):
        launchers.LAUNCHERS[launch](Namespace())


def test_the_launcher_of_deepspeed_is_told_the_instances(
    code: Importer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launchers = code("run_pytorch", "launchers")
    env = RankEnv(rank=1, world_size=2, instance_rank=1, instance_count=2, launcher="pytorch", master_addr="127.0.0.2")
    monkeypatch.setattr(launchers, "detect", lambda: env)
    monkeypatch.setattr(launchers, "_join", lambda _: None)
    monkeypatch.setenv("AZ_BATCH_HOST_LIST", "127.0.0.2,127.0.0.3")
    monkeypatch.chdir(tmp_path)
    words = " ".join(launchers.deepspeed(Namespace(processes=3)))
    assert (tmp_path / "hostfile").read_text() == "127.0.0.2 slots=3\n127.0.0.3 slots=3\n"
    assert f"deepspeed.launcher.runner --hostfile {tmp_path}/hostfile --no_ssh --node_rank 1 --num_gpus 3" in words
    assert "--master_addr 127.0.0.2" in words
    monkeypatch.setenv("AZ_BATCH_HOST_LIST", "")
    launchers.deepspeed(Namespace(processes=1))
    assert (tmp_path / "hostfile").read_text() == "instance-0 slots=1\ninstance-1 slots=1\n"


def test_process_counts_that_do_not_fit(code: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    launchers = code("run_pytorch", "launchers")
    env = RankEnv(world_size=2, instance_count=2, launcher="pytorch", master_addr="127.0.0.2", master_port=6105)
    monkeypatch.setattr(launchers, "detect", lambda: env)
    monkeypatch.setattr(launchers, "_gpus", lambda: 4)
    monkeypatch.setattr(launchers, "_join", lambda _: None)  # nobody is at the master's address
    given = {"processes": 0, "min_instances": 0, "max_restarts": 0}
    assert "--nproc-per-node 4" in " ".join(launchers.torchrun(Namespace(**given)))
    with pytest.raises(InputError, match="8 processes on the 4 GPUs of this instance"):
        launchers.torchrun(Namespace(**given | {"processes": 8}))
    with pytest.raises(InputError, match="3 of 2 instances"):
        launchers.torchrun(Namespace(**given | {"min_instances": 3}))
    with pytest.raises(InputError, match="input max_restarts: 0, with 1 to 2 instances"):
        launchers.torchrun(Namespace(**given | {"min_instances": 1}))


@pytest.mark.parametrize(
    ("config", "precision", "options"),
    [
        (None, None, ["--mixed_precision no", "--dynamo_backend no", "--multi_gpu"]),
        (None, "bf16", ["--mixed_precision bf16", "--dynamo_backend no", "--multi_gpu"]),
        ("c.yaml", None, ["--config_file c.yaml"]),
        ("c.yaml", "fp16", ["--config_file c.yaml", "--mixed_precision fp16"]),
    ],
)
def test_accelerate_takes_what_is_not_given_from_its_configuration(
    config: str | None, precision: str | None, options: list[str], code: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    launchers = code("run_pytorch", "launchers")
    env = RankEnv(world_size=1, launcher="pytorch", master_addr="127.0.0.2", master_port=6105)
    monkeypatch.setattr(launchers, "detect", lambda: env)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    words = " ".join(launchers.accelerate(Namespace(config=config, mixed_precision=precision, processes=2)))
    every = ("--config_file", "--mixed_precision", "--dynamo_backend", "--multi_gpu")
    assert [each for each in every if each in words] == [each for each in every if each in " ".join(options)]
    assert all(option in words for option in options)


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ("mpi", "launcher none\n  expected: mpi"),
        ("ray", "RAY_ADDRESS: is not set"),
    ],
)
def test_the_wrong_launch_is_refused(launch: str, said: str, tmp_path: Path, variables: dict[str, str]) -> None:
    ended = run([command(launch, tmp_path)], [variables], tmp_path)
    assert ended.codes == [2]
    assert said in ended.errors[0]
    assert "Traceback" not in ended.errors[0]


def test_arguments_with_the_quotes_of_the_command_are_refused() -> None:
    command_text = yaml.safe_load((COMPONENTS / "own_script/run_pytorch/run_mpi/component.yaml").read_text())["command"]
    command_text = command_text.partition("$[[--data")[0].partition("$[[--source ${{inputs.source}}]]")[2]
    for arguments, found in (("--name 'two words'", ["--name 'two words'"]), ('--name "two words"', [])):
        given = {"script": "train.py", "arguments": arguments}
        ports = tuple(Input(name, "string", Literal(value)) for name, value in given.items())
        problems = check_plan(Plan("p", Graph((Step("train", command_text, inputs=ports),))))
        # What is left of the command begins with an option.
        assert [problem.found for problem in problems if problem.rule != "option-line"] == found


def test_the_code_of_the_node_takes_the_place_of_the_source(tmp_path: Path) -> None:
    """The program that starts it finds its spec, and everything else that it needs, beside it."""
    with session():
        from azure.ai.ml import load_component

        loaded = load_component(folder_of("run_torchrun") / "component.yaml")
        loaded.code = str(SCRIPTS)
        with loaded._build_code() as snapshot:
            shutil.copytree(snapshot.path, tmp_path / "code")
            _, *words = shlex.split(loaded.command)[:6]  # python start.py --spec FILE --launch NAME
    outputs = [f"--{name}={tmp_path / name}" for name in ("results", "model", "checkpoints", "metrics")]
    started = [sys.executable, *words, "--script", "missing.py", *outputs]
    ended = run([started], [clean() | {"RANK": "0", "WORLD_SIZE": "1"}], tmp_path / "code")
    assert "missing.py, which is not in the code of the node" in ended.errors[0], ended
    assert (tmp_path / "code/sum_ranks.py").exists()
