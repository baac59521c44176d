from __future__ import annotations

from pathlib import Path

from allranks.hardware.nccl_conf import read


def test_no_files(tmp_path: Path) -> None:
    assert read({"HOME": str(tmp_path)}, tmp_path / "nccl.conf") == {}


def test_the_users_file_wins_over_the_systems(tmp_path: Path) -> None:
    system = tmp_path / "nccl.conf"
    system.write_text("# by the host image\nNCCL_DEBUG=WARN\n\nNCCL_TOPO_FILE = /a\nnothing\n")
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    assert read({"HOME": str(tmp_path)}, system) == {"NCCL_DEBUG": "INFO", "NCCL_TOPO_FILE": "/a"}
    assert read({}, system)["NCCL_DEBUG"] == "WARN"


def test_a_file_that_a_variable_names_stands_for_the_users(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text("NCCL_DEBUG=INFO\n")
    mine = tmp_path / "mine.conf"
    mine.write_text("NCCL_ALGO=Ring\n")
    found = read({"HOME": str(tmp_path), "NCCL_CONF_FILE": str(mine)}, tmp_path / "nothing")
    assert found == {"NCCL_ALGO": "Ring"}
