"""`allranks run --environment`: one training in virtual environments with other versions of a package."""

import sys
from pathlib import Path

import pytest

from allranks.images import cache
from allranks_command import allranks, called, logs
from pipeline_files import write_training
from wheels import write_wheel

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"

RUN = ("run", "job.yml", "--environment", "venv")

TRAIN = """\
import os, sys, tinypackage
print(tinypackage.step(int(os.environ["RANK"])), tinypackage.VERSION, sys.prefix)
"""


def write_project(folder: Path, version: str) -> None:
    pip = ["--no-index", "--find-links wheels", f"tinypackage=={version}"]
    environment = f'{{image: "python:{OWN}", conda_file: conda.yml}}'
    write_training(folder, TRAIN, environment, f"python={OWN}", {"pip": pip})


@pytest.mark.slow
def test_a_2x2_training_in_two_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = str(tmp_path / "cache")
    monkeypatch.setenv("XDG_CACHE_HOME", own)
    write_wheel(tmp_path / "wheels", "1.0", code="step = lambda rank: rank * 2\n")
    write_wheel(tmp_path / "wheels", "2.0", code="step = lambda rank: rank * 3\n")

    runs = list[str]()

    def results(version: str) -> list[str]:
        write_project(tmp_path, version)
        ended = allranks(*RUN, "--no-track", "--json", folder=tmp_path, XDG_CACHE_HOME=own)
        step = ended.step("train")
        assert not step["reused_from"]
        runs.append(ended.json["id"])
        return logs(step)

    first, second = results("1.0"), results("2.0")
    prefixes = {line.split()[-1] for line in first + second}
    assert {Path(prefix).parent for prefix in prefixes} == {cache.root()}
    assert len(prefixes) == 2
    assert [line.rsplit(" ", 1)[0] for line in first] == [f"{rank * 2} 1.0" for rank in range(4)]
    assert [line.rsplit(" ", 1)[0] for line in second] == [f"{rank * 3} 2.0" for rank in range(4)]
    (changed, *_) = called("diff", *runs, "--json", folder=tmp_path).json["causes"]
    assert (changed["step"], changed["what"]) == ("train", "package tinypackage")
    assert (changed["before"], changed["after"]) == ("1.0", "2.0")

    (tmp_path / "conda.yml").write_text((tmp_path / "conda.yml").read_text().replace("2.0", "3.0"))
    ended = called(*RUN, folder=tmp_path, XDG_CACHE_HOME=own)
    assert ended.code == 2
    assert "its packages cannot be installed" in ended.err
    assert "Traceback" not in ended.err
    assert len(list(cache.root().glob("venv-*/"))) == 2
    dry = called(*RUN, "--dry-run", folder=tmp_path, XDG_CACHE_HOME=own)
    assert dry.code == 0, dry.err
    assert "venv-" in dry.out
