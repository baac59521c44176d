"""`allranks doctor --sizes`: the table, one size's page, and what a step's size is warned of."""

from pathlib import Path

import pytest

from allranks_command import Ended, called, write_job

COLUMNS = "140"


def shown(folder: Path, *arguments: str) -> Ended:
    return called("doctor", *arguments, folder=folder, COLUMNS=COLUMNS)


def names(folder: Path, *arguments: str) -> set[str]:
    done = shown(folder, "--sizes", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return {size["name"].removeprefix("Standard_") for size in done.json}


def test_the_table(tmp_path: Path) -> None:
    done = shown(tmp_path, "--sizes")
    assert (done.code, done.err) == (0, "")
    (row,) = (line for line in done.out.splitlines() if "ND96amsr_A100_v4" in line)
    assert " ".join(row.split()) == "Standard_ND96amsr_A100_v4 8 x A100 80 GB 12, 13 8 x 200 Gb/s 1900"
    assert "NC24r" not in done.out
    assert "retired" not in done.out
    assert not list(tmp_path.iterdir())


def test_a_row_fits_a_line_of_80_columns(tmp_path: Path) -> None:
    done = called("doctor", "--sizes", folder=tmp_path)
    assert len(done.out.splitlines()) == 2 + len(names(tmp_path))
    assert max(map(len, done.out.splitlines())) <= 80


def test_what_the_filters_leave(tmp_path: Path) -> None:
    assert names(tmp_path, "--gpu", "a100", "--infiniband") == {"ND96asr_v4", "ND96amsr_A100_v4"}
    assert "ND96isr_H100_v5" not in names(tmp_path, "--no-infiniband")
    assert names(tmp_path, "--gpu", "V100") == {"ND40rs_v2"}
    retired = names(tmp_path, "--gpu", "V100", "--retired")
    assert retired == {"ND40rs_v2", "NC24rs_v3", "NC24s_v3", "NC12s_v3", "NC6s_v3"}


def test_a_filter_that_leaves_nothing(tmp_path: Path) -> None:
    done = shown(tmp_path, "--gpu", "K80")
    assert done.code == 0
    assert "--retired" in done.out


def test_a_size(tmp_path: Path) -> None:
    done = shown(tmp_path, "nd96ASR_v4")
    assert (done.code, done.err) == (0, "")
    for words in (
        "Standard_ND96asr_v4  8 x A100, 40 GB each",
        "8, a process for each GPU",
        "/opt/microsoft/ndv4/topo.xml",
        "='=<each InfiniBand device found>'",
        "at least 228 GB/s on one instance",
        "conf/nd96asr_v4.conf",
    ):
        assert words in done.out
    assert "!" not in done.out


def test_a_size_with_traps(tmp_path: Path) -> None:
    done = shown(tmp_path, "NC24r")
    assert "! resources.instance_type" in done.out
    assert "no SR-IOV" in done.out
    assert "is retired since 2023-09-06" in done.out
    assert "NCCL_IB_DISABLE" in done.out


def test_a_size_asked_for_infiniband(tmp_path: Path) -> None:
    assert "asks for InfiniBand" not in shown(tmp_path, "NC96ads_A100_v4").out
    assert "asks for InfiniBand" in shown(tmp_path, "NC96ads_A100_v4", "--infiniband").out


def test_a_size_as_json(tmp_path: Path) -> None:
    size = shown(tmp_path, "NC96ads_A100_v4", "--json").json
    assert (size["gpus"], size["infiniband"], size["process_count_per_instance"]) == (4, False, 4)
    settings = {setting["name"]: setting["value"] for setting in size["settings"]}
    assert settings["NCCL_GRAPH_FILE"] == "/opt/microsoft/ncv4/graph.xml"
    assert size["warnings"] == []
    assert all(source.startswith(("azure", "azhpc")) for source in size["sources"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ND96asr_A100_v4",), "Standard_ND96amsr_A100_v4"),
        (("--gpu", "B200X"), "A100"),
        (("NC24r", "--gpu", "K80"), "--gpu"),
        (("NC24r", "--retired"), "--retired"),
        (("NC24r", "--sizes"), "--sizes"),
    ],
)
def test_wrong_input(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = shown(tmp_path, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


JOB = {"resources": {"instance_type": "Standard_NC96ads_A100_v4", "instance_count": 2}}
JOB |= {"distribution": {"type": "pytorch", "process_count_per_instance": 8}}


def test_check_warns_of_a_steps_size(tmp_path: Path) -> None:
    write_job(tmp_path, "echo hello", **JOB)
    done = called("check", "job.yml", folder=tmp_path)
    assert done.code == 0
    assert "no problems, 1 warning" in done.out
    assert "8 processes on the 4 GPUs of Standard_NC96ads_A100_v4" in done.err
    assert "nothing was started" not in done.err
    found = called("check", "job.yml", "--json", folder=tmp_path).json
    assert found["problems"] == []
    assert [warning["where"].partition(" (")[0] for warning in found["warnings"]] == [
        "step job, key distribution.process_count_per_instance"
    ]


def test_a_dry_run_warns_of_it_too(tmp_path: Path) -> None:
    write_job(tmp_path, "echo hello", **JOB)
    done = called("run", "job.yml", "--dry-run", "--instances", "loopback", "--json", folder=tmp_path)
    assert done.code == 0
    assert done.json["steps"][0]["instance_type"] == "Standard_NC96ads_A100_v4"
    assert "8 processes on the 4 GPUs" in done.err
