"""What a rank's environment has of NCCL and UCX before its process group starts, and what is said of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

import fake_instance
from allranks.contract import report
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.runtime import libraries
from allranks.runtime.ranks import network_settings

RANK = RankEnv(9, 1, 16, 8, 1, 2, "10.0.0.4", 6105, "pytorch")
FIRST = RankEnv(8, 0, 16, 8, 1, 2, "10.0.0.4", 6105, "pytorch")


@dataclass(frozen=True)
class Instance:
    """An instance as a test makes it. root: of its file system"""

    root: Path

    @property
    def sysfs(self) -> Path:
        return self.root / "sys/class/infiniband"

    @property
    def topology(self) -> Path:
        return self.root / "opt/microsoft"

    def set_up(self, environ: dict[str, str], env: RankEnv = FIRST, *, gpus: int = 8) -> dict[str, str]:
        network_settings.apply(env, "eth0", gpus=gpus, environ=environ, root=self.root)
        return environ


@pytest.fixture
def bare(tmp_path: Path) -> Instance:
    """A machine that shows nothing."""
    return Instance(tmp_path)


@pytest.fixture
def ndv4(bare: Instance) -> Instance:
    """An instance of ND96asr_v4, on which the devices have one of the two names that Azure gives them."""
    for number in range(8):
        fake_instance.add_device(bare.sysfs, f"mlx5_ib{number}")
    fake_instance.add_accelerated_networking(bare.sysfs)
    fake_instance.add_topology(bare.topology, "ndv4")
    return bare


def test_a_plain_machine_gets_the_interface_and_no_word(bare: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    assert bare.set_up({}) == {"NCCL_SOCKET_IFNAME": "=eth0"}
    assert bare.set_up({"NCCL_SOCKET_IFNAME": "mine"}) == {"NCCL_SOCKET_IFNAME": "mine"}
    assert capsys.readouterr().err == ""


def test_no_interface_is_known(bare: Instance) -> None:
    environ: dict[str, str] = {}
    network_settings.apply(FIRST, None, gpus=0, environ=environ, root=bare.root)
    assert environ == {}


@pytest.mark.parametrize("given", [{}, {"ALLRANKS_SIZE": "ND96asr_v4"}])
def test_an_instance_with_infiniband(ndv4: Instance, given: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    environ = ndv4.set_up(dict(given))
    assert environ["NCCL_IB_HCA"] == "=" + ",".join(f"mlx5_ib{number}:1" for number in range(8))
    assert environ["NCCL_TOPO_FILE"] == str(ndv4.topology / "ndv4" / "topo.xml")
    assert environ["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
    assert environ["UCX_NET_DEVICES"].startswith("mlx5_ib0:1,")
    (line,) = capsys.readouterr().err.splitlines()
    for name, value in environ.items():
        if name.startswith(("NCCL_", "UCX_")):
            assert f"{name}={value} (" in line
    assert line.startswith("allranks: instance 1, ")
    assert ("Standard_ND96asr_v4" in line) == bool(given)


def test_only_the_first_rank_of_an_instance_says_it(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    assert "NCCL_IB_HCA" in ndv4.set_up({}, RANK)
    assert capsys.readouterr().err == ""


def test_it_is_said_once_and_stays(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    environ = ndv4.set_up({})
    assert capsys.readouterr().err
    assert ndv4.set_up(dict(environ)) == environ
    assert capsys.readouterr().err == ""


def test_a_users_value_wins_and_it_is_said(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    mine = {"NCCL_TOPO_FILE": "/mine.xml", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_SOCKET_IFNAME": "eth1"}
    environ = ndv4.set_up(dict(mine))
    assert mine.items() <= environ.items()
    (line,) = capsys.readouterr().err.splitlines()
    _, _, kept = line.partition("already set, unchanged: ")
    assert "NCCL_TOPO_FILE=/mine.xml (default " in kept
    assert "NCCL_SOCKET_IFNAME=eth1" in kept
    assert "NCCL_IB_PCI_RELAXED_ORDERING" not in line  # equal to the default


def test_nccls_own_file_wins(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    (ndv4.root / "etc").mkdir()
    (ndv4.root / "etc/nccl.conf").write_text("NCCL_TOPO_FILE=/etc/topo.xml\n")
    assert "NCCL_TOPO_FILE" not in ndv4.set_up({})
    assert "already set, unchanged: NCCL_TOPO_FILE=/etc/topo.xml" in capsys.readouterr().err


def test_what_another_instance_set_is_set_anew(ndv4: Instance, tmp_path: Path) -> None:
    """mpirun -x and the like carry variables to instances whose devices have other names."""
    environ = ndv4.set_up({})
    other = Instance(tmp_path / "other")
    for number in range(8):
        fake_instance.add_device(other.sysfs, f"mlx5_{number}")
    environ = other.set_up(environ)
    assert environ["NCCL_IB_HCA"].startswith("=mlx5_0:1,")
    assert "NCCL_TOPO_FILE" not in environ


def test_what_a_script_has_changed_since_stays(ndv4: Instance) -> None:
    environ = ndv4.set_up({}) | {"NCCL_IB_HCA": "mine"}
    assert ndv4.set_up(environ)["NCCL_IB_HCA"] == "mine"


def test_none_leaves_all_but_the_interface_alone(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    environ = ndv4.set_up({"ALLRANKS_SIZE": "none"})
    assert environ == {"ALLRANKS_SIZE": "none", "NCCL_SOCKET_IFNAME": "=eth0"}
    assert capsys.readouterr().err == ""


def test_a_size_that_nobody_knows_is_no_reason_to_stop(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    """A size may be newer than the table."""
    environ = ndv4.set_up({"ALLRANKS_SIZE": "Standard_ND999_v9"})
    assert "NCCL_IB_HCA" in environ
    assert "ALLRANKS_SIZE=Standard_ND999_v9 is not a known size" in capsys.readouterr().err
    ndv4.set_up(environ)
    assert capsys.readouterr().err == ""


def test_a_size_without_infiniband(bare: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    environ = bare.set_up({"ALLRANKS_SIZE": "NC24ads_A100_v4"})
    assert (environ["NCCL_IB_DISABLE"], environ["UCX_NET_DEVICES"]) == ("1", "eth0")
    assert "NC24ads_A100_v4 has no InfiniBand" in capsys.readouterr().err


def test_infiniband_that_is_paid_for_and_not_there(ndv4: Instance, capsys: pytest.CaptureFixture[str]) -> None:
    (ndv4.sysfs / "mlx5_ib7" / "ports" / "1" / "state").write_text("1: DOWN\n")
    ndv4.set_up({"ALLRANKS_SIZE": "ND96asr_v4"})
    settings, missing = capsys.readouterr().err.splitlines()
    assert "mlx5_ib7" not in settings
    assert "7 InfiniBand devices are up; mlx5_ib7:1 is DOWN" in missing


def test_every_launch_with_an_address_comes_here(monkeypatch: pytest.MonkeyPatch, ndv4: Instance) -> None:
    monkeypatch.setattr(
        network_settings, "apply", lambda env, interface, **given: seen.append((interface, given["gpus"]))
    )
    seen: list[tuple[str | None, int]] = []
    env = RankEnv(0, 0, 2, 2, 0, 1, "127.0.0.1", 6105, "mpi")
    libraries.set_variables(env, environ={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert seen == [("lo", 2)]


@pytest.mark.slow
def test_real_ranks(start) -> None:  # type: ignore[no-untyped-def]
    """Both have the settings; the first alone says so, once, and keeps it among the run's notes."""
    ended = start(
        "settings_of_the_network.py", distribution=PyTorch(2), variables={"ALLRANKS_SIZE": "NC24ads_A100_v4"}
    ).wait()
    assert [one.code for one in ended] == [0, 0], ended
    first, second = ended
    assert "NCCL_IB_DISABLE=1" in first.stdout.splitlines()
    assert first.stdout == second.stdout
    assert first.stderr.count("NCCL_IB_DISABLE=1") == 1
    assert second.stderr == ""
    assert [note.text for note in first.of(report.Note)] == [first.stderr.strip().removeprefix("allranks: ")]
    assert second.of(report.Note) == []
