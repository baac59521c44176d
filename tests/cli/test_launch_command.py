"""`allranks launch`: a script, and whatever follows it on the command line."""

import shlex
from pathlib import Path

import pytest

from allranks_command import allranks, called, content, write

SCRIPT = """\
    import os
    import sys
    from pathlib import Path

    print(os.environ["RANK"], "of", os.environ["WORLD_SIZE"], os.environ["A"], *sys.argv[1:2], *sys.argv[4:])
    Path(sys.argv[3], "written").write_text(Path(sys.argv[2], "read").read_text())
    if "--fail" in sys.argv and os.environ["RANK"] == "2":
        raise ValueError("rank 2 has no luck")
"""
OPTIONS = "launch -j 2x2 --instances loopback --no-track --env A=1 --input data=data --output model --json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "train.py", SCRIPT)
    write(tmp_path, "data/read", "text")
    return tmp_path


def test_a_script_runs_with_what_follows_it(folder: Path) -> None:
    words = shlex.split(OPTIONS)
    ended = allranks(*words, "train.py", "--json", "{data}", "{model}", "-j", "a  'b'", folder=folder)
    assert ended.code == 0, ended.err
    (step,) = ended.json["steps"]
    assert (step["name"], step["distribution"], step["instance_count"]) == ("train", "pytorch", 2)
    assert ("0 of 4 1" in ended.err, "1 of 4 1" in ended.err) == (True, False)
    assert [Path(rank["log"]).read_text() for rank in step["ranks"]] == [
        f"{rank} of 4 1 --json -j a  'b'\n" for rank in range(4)
    ]
    assert Path(step["outputs"][0]["path"], "written").read_text() == "text"
    assert Path(ended.json["page"]).is_file()

    again = called("rerun", "latest", "--json", folder=folder)
    assert (again.code, again.json["name"]) == (0, "train")
    latest = called("rerun", "latest", "--latest-code", folder=folder)
    assert (latest.code, "not read from a file" in " ".join(latest.err.split())) == (2, True)


def test_a_rank_that_fails_is_named(folder: Path) -> None:
    ended = called(*shlex.split(OPTIONS), "--quiet", "train.py", "x", "{data}", "{model}", "--fail", folder=folder)
    assert ended.code == 1
    assert "0 of 4 1" not in ended.err
    verdict = ended.json["steps"][0]["verdict"]
    assert (verdict["rank"], verdict["tail"][-1]) == (2, "ValueError: rank 2 has no luck")


def test_a_dry_run_of_a_pasted_launcher(folder: Path) -> None:
    before = content(folder)
    words = "launch --dry-run -- torchrun --nnodes 2 --nproc-per-node 4 --standalone --node-rank 0 train.py --lr 1"
    ended = called(*shlex.split(words), folder=folder)
    assert ended.code == 0, ended.err
    said = " ".join(ended.out.split())
    assert "train pytorch 2 x 1" in said
    assert "torchrun --nnodes 2 --node-rank $NODE_RANK --nproc-per-node 4" in said
    assert "code of train 2 files" in said
    assert "allranks-pytorch, build" in said
    assert "ignored, because Azure ML sets it: --standalone, --node-rank 0" in " ".join(ended.err.split())
    assert content(folder) == before


def test_a_file_is_written_and_nothing_runs(folder: Path) -> None:
    ended = called("launch", "-j", "2x2", "--emit", "job.yml", "train.py", "x", folder=folder)
    assert ended.code == 0, ended.err
    assert "environments/pytorch: copied" in ended.out
    assert "az ml job create --file job.yml" in ended.out
    assert {path.name for path in folder.iterdir()} == {"train.py", "data", "job.yml", "environments"}
    assert called("check", "job.yml", folder=folder).code == 0
    submitted = called("submit", "job.yml", "--dry-run", folder=folder)
    assert (submitted.code, '"processCountPerInstance": 2' in submitted.out) == (0, True)
    ended = called("launch", "--emit", "again.yml", "--json", "train.py", folder=folder)
    assert ended.json == {"folder": ".", "written": ["again.yml"]}
