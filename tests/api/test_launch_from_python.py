"""`allranks.launch`: start a script from Python."""

from pathlib import Path

import pytest

import allranks


def test_a_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = Path("train.py")
    script.write_text("import os, sys\nprint(os.environ['RANK'], os.environ['A'], sys.argv[1:])\n")
    (tmp_path / "data").mkdir()
    run = allranks.launch(
        script,
        ["--epochs", 3, "--out={model}"],
        layout="1x2",
        inputs={"data": tmp_path / "data"},
        outputs=["model"],
        env={"A": "1"},
        instances="loopback",
        track=False,
    ).wait()
    assert run.logs("train", 1).startswith("1 1 ['--epochs', '3', '--out=")
    assert "'--data', '" in run.logs("train", 1)
    assert Path(run.outputs["model"]).is_dir()


def test_nothing_starts_if_it_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(allranks.InputError, match="there is no such file"):
        allranks.launch("train.py", layout="2x2")
    Path("train.py").write_text("import a_package_of_nobody\n")
    with pytest.raises(allranks.InputError, match="no Python package a_package_of_nobody"):
        allranks.launch("train.py")
    with pytest.raises(TypeError, match="retrys"):
        allranks.launch("train.py", retrys=2)
    assert {path.name for path in tmp_path.iterdir()} == {"train.py"}
