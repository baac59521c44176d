"""Pipelines and components of the library as a project's own files."""

from pathlib import Path

import pytest

from allranks.catalog import shipped_folder
from allranks.project.files import copy_components, pipeline
from allranks_command import called, content

pytestmark = pytest.mark.slow  # starts the command


def test_a_pipeline_of_the_library_becomes_the_project_s_own_and_is_right(tmp_path: Path) -> None:
    done = called("init", "new", "--from", "own_script", folder=tmp_path)
    assert (done.code, "allranks run pipelines/own_script.py" in done.out) == (0, True)
    shipped = (shipped_folder() / "pipelines/own_script.py").read_text()
    assert (tmp_path / "new/pipelines/own_script.py").read_text() == shipped
    checked = called("check", "pipelines/own_script.py", folder=tmp_path / "new")
    assert (checked.code, "no problems" in checked.out) == (0, True)


def test_scripts_come_with_their_pipeline() -> None:
    assert [*pipeline("lightning")] == ["pipelines/lightning.py"]
    assert "pipelines/own_scripts/train_digits.py" in pipeline("own_script")
    assert "pipelines/image_scoring/score.py" in pipeline("score_images")


def test_copied_components_are_complete_with_their_environments(tmp_path: Path) -> None:
    environment = tmp_path / "environments/pytorch"
    environment.mkdir(parents=True)
    (environment / "Dockerfile").write_text("FROM mine\n")
    (environment / "environment.yaml").write_text("name: mine\nbuild: {path: .}\n")
    written = copy_components(["run_mpi", "verify_environment", "prepare_images"], tmp_path)
    assert {folder.as_posix() for folder in written if folder.parts[0] == "components"} == {
        "components/own_script/run_pytorch",  # whose variant run_mpi is
        "components/diagnosis/verify_environment",
        "components/image_classification/prepare_images",
    }
    assert content(environment)["Dockerfile"] == b"FROM mine\n"
    copied = content(tmp_path / "environments/openmpi-ofed")
    assert b"\nFROM ofed AS base\n" in copied["Dockerfile"]
    assert copied["setup_mpi.sh"] == (shipped_folder() / "environments/shared/setup_mpi.sh").read_bytes()
    checked = called("check", "components", folder=tmp_path)
    assert (checked.code, checked.out.startswith("components: 11 components, no problems")) == (0, True)
