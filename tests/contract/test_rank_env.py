"""The two sides of the contract: what a launch gives a process, and what the process reads back."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allranks.contract import produce
from allranks.contract.launch import Distribution, Launch, Process
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.contract.world import detect
from allranks.errors import InputError

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=12)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
variables = st.dictionaries(names, texts, max_size=3)


@st.composite
def launches(
    draw: st.DrawFn, kinds: tuple[type[Distribution], ...] = (PyTorch, Mpi, TensorFlow, Ray, Single)
) -> Launch:
    """Any launch that the platform could make."""
    addresses = draw(st.lists(st.ip_addresses(v=4).map(str), min_size=1, max_size=4, unique=True))
    kind = draw(st.sampled_from(kinds))
    distribution: Distribution
    if kind is TensorFlow:
        workers = draw(st.none() | st.integers(1, len(addresses)))
        distribution = TensorFlow(workers, draw(st.integers(0, len(addresses))))
    elif kind is Ray:
        distribution = Ray(port=draw(st.none() | st.integers(1, 65535)))
    elif kind is Single:
        distribution = Single()
    else:
        distribution = (Mpi if kind is Mpi else PyTorch)(draw(st.integers(1, 5)))
    hostnames = draw(st.lists(names, min_size=len(addresses), max_size=len(addresses)))
    return Launch(distribution, tuple(addresses), tuple(hostnames), draw(st.integers(1, 65535)))


def meant(of: Launch, process: Process) -> RankEnv:
    """What a launch means for one of its processes, said without its variables."""
    settings, count, master = of.distribution, of.instance_count, of.addresses[0]
    if isinstance(settings, Single):
        return RankEnv(instance_rank=process.instance_rank, instance_count=count)
    if isinstance(settings, TensorFlow):
        here = [other for other in produce.processes(of) if other.instance_rank == process.instance_rank]
        return RankEnv(
            rank=process.rank,
            local_rank=here.index(process),
            world_size=len(produce.processes(of)),
            local_world_size=len(here),
            instance_rank=process.instance_rank,
            instance_count=count,
            master_addr=master,
            master_port=2222,
            launcher="tensorflow",
            role=process.role,
        )
    each = 1 if isinstance(settings, Ray) else settings.process_count_per_instance
    return RankEnv(
        rank=process.instance_rank * each + process.local_rank,
        local_rank=process.local_rank,
        world_size=count * each,
        local_world_size=each,
        instance_rank=process.instance_rank,
        instance_count=count,
        master_addr=master,
        master_port=of.master_port,
        launcher=settings.type,
    )


@given(launches())
def test_a_process_reads_back_the_place_that_its_launch_gave_it(of: Launch) -> None:
    for process in produce.processes(of):
        assert detect(produce.environment(of, process)) == meant(of, process)


@given(launches(), variables, variables, variables)
def test_the_job_s_own_variables_change_nothing_of_that(
    of: Launch, inputs: dict[str, str], outputs: dict[str, str], parameters: dict[str, str]
) -> None:
    run = produce.Job("run", "root", "experiment", "sqlite:///x", "1", inputs, outputs, parameters)
    for process in produce.processes(of):
        assert detect(produce.job_environment(run, of, process)) == meant(of, process)


@given(launches((PyTorch, Mpi)))
def test_without_azure_ml_s_instance_count_a_place_is_right_or_refused_never_guessed(of: Launch) -> None:
    for process in produce.processes(of):
        environ = produce.environment(of, process)
        alone = {name: value for name, value in environ.items() if not name.startswith("AZUREML_")}
        if process.instance_rank == 0 and meant(of, process).world_size > 1 and isinstance(of.distribution, PyTorch):
            # Instance 0 alone cannot tell 1 x 4 from 2 x 2.
            with pytest.raises(InputError, match="LOCAL_WORLD_SIZE"):
                detect(alone)
        else:
            assert detect(alone) == meant(of, process)


def test_without_a_launcher_a_process_is_the_only_rank() -> None:
    assert detect({}) == RankEnv()
    assert RankEnv() == RankEnv(0, 0, 1, 1, 0, 1, None, None, "none", "worker")


def test_the_process_s_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NODE_RANK", raising=False)
    assert detect().rank == 1


TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "3",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.4",
    "MASTER_PORT": "7000",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
PLAIN = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
TF_CONFIG = {
    "TF_CONFIG": json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}),
}


def per_node(distribution: Distribution) -> dict[str, str]:
    """What the second of two instances is given under per-node launch."""
    outer = Launch(distribution, ("10.0.0.4", "10.0.0.5"), ("node-0", "node-1"))
    return produce.environment(outer, produce.processes(outer)[1])


@pytest.mark.parametrize(
    ("outer", "inner", "launcher"),
    [
        pytest.param(per_node(PyTorch()), TORCHRUN, "torchrun", id="torchrun in PyTorch"),
        pytest.param(per_node(Mpi()), TORCHRUN, "torchrun", id="torchrun in MPI"),
        pytest.param(per_node(TensorFlow()), TORCHRUN, "torchrun", id="torchrun in TensorFlow"),
        pytest.param(per_node(PyTorch()), OPEN_MPI, "mpi", id="mpirun in PyTorch"),
        pytest.param(per_node(Ray()), PLAIN, "pytorch", id="Ray Train in Ray"),
        pytest.param(per_node(Single()), PLAIN, "pytorch", id="a script without a distribution"),
    ],
)
def test_the_inner_launcher_wins(outer: Mapping[str, str], inner: Mapping[str, str], launcher: str) -> None:
    found = detect({**outer, **inner})
    assert (found.launcher, found.rank, found.world_size) == (launcher, 3, 4)
    assert (found.local_rank, found.local_world_size, found.instance_rank, found.instance_count) == (1, 2, 1, 2)


def test_tf_config_wins_over_plain_names() -> None:
    found = detect({**PLAIN, **TF_CONFIG})
    assert (found.launcher, found.rank, found.world_size) == ("tensorflow", 1, 2)


def without(environ: Mapping[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in environ.items() if key != name}


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({**PLAIN, "RANK": "4"}, "RANK"),
        ({**PLAIN, "RANK": "-1"}, "RANK"),
        ({**PLAIN, "RANK": "one"}, "RANK"),
        ({**PLAIN, "RANK": "1_0"}, "RANK"),
        ({**PLAIN, "RANK": "9" * 5000}, "RANK"),
        ({**PLAIN, "WORLD_SIZE": "0"}, "WORLD_SIZE"),
        (without(PLAIN, "RANK"), "RANK"),
        (without(PLAIN, "WORLD_SIZE"), "WORLD_SIZE"),
        (without(PLAIN, "LOCAL_RANK"), "LOCAL_RANK"),
        ({**PLAIN, "LOCAL_RANK": ""}, "LOCAL_RANK"),
        ({**PLAIN, "LOCAL_RANK": "2"}, "LOCAL_RANK"),
        ({**PLAIN, "LOCAL_WORLD_SIZE": "3"}, "LOCAL_WORLD_SIZE"),
        ({**PLAIN, "LOCAL_WORLD_SIZE": "8"}, "LOCAL_WORLD_SIZE"),
        ({**PLAIN, "LOCAL_RANK": "0"}, "RANK"),
        ({**PLAIN, "NODE_RANK": "2"}, "NODE_RANK"),
        ({**PLAIN, "MASTER_PORT": "http"}, "MASTER_PORT"),
        ({**PLAIN, "MASTER_PORT": "65536"}, "MASTER_PORT"),
        (without(PLAIN, "LOCAL_WORLD_SIZE"), "LOCAL_WORLD_SIZE"),
        ({**without(PLAIN, "LOCAL_WORLD_SIZE"), "AZUREML_NODE_COUNT": "3"}, "WORLD_SIZE"),
        ({**without(PLAIN, "LOCAL_WORLD_SIZE"), "NODE_RANK": "3"}, "RANK"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_RANK": "4"}, "OMPI_COMM_WORLD_RANK"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK": "2"}, "OMPI_COMM_WORLD_LOCAL_RANK"),
        (without(OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE"), "OMPI_COMM_WORLD_LOCAL_SIZE"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_SIZE": "5"}, "OMPI_COMM_WORLD_RANK"),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "MPI_LOCALRANKID"),
        ({**TORCHRUN, "GROUP_RANK": "2"}, "GROUP_RANK"),
        (without(TORCHRUN, "LOCAL_RANK"), "LOCAL_RANK"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG"),
        ({"TF_CONFIG": "[]"}, "TF_CONFIG"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'}, "TF_CONFIG"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}'}, "TF_CONFIG"),
        # A hostfile, --nnodes or a mpirun of one's own with more instances than the step has.
        ({**PLAIN, "AZUREML_NODE_COUNT": "1"}, "AZUREML_NODE_COUNT"),
        ({**TORCHRUN, "AZUREML_NODE_COUNT": "1"}, "AZUREML_NODE_COUNT"),
        ({**OPEN_MPI, "AZUREML_NODE_COUNT": "1"}, "AZUREML_NODE_COUNT"),
        ({"AZUREML_NODE_COUNT": "2"}, "AZUREML_CR_NODE_RANK"),
        ({"AZUREML_NODE_COUNT": "2", "AZUREML_CR_NODE_RANK": "2"}, "AZUREML_CR_NODE_RANK"),
    ],
)
def test_variables_that_cannot_be_right_are_named(environ: Mapping[str, str], named: str) -> None:
    with pytest.raises(InputError) as caught:
        detect(environ)
    (problem,) = caught.value.problems
    assert problem.where == f"environment variable {named}"
    assert problem.found
    assert problem.expected
    assert problem.fix
