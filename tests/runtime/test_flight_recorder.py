"""What torch's Flight Recorder is told before a process group starts."""

from pathlib import Path

import pytest

from allranks.runtime.ranks import process_group


def test_the_files_go_to_the_outputs(tmp_path: Path) -> None:
    environ: dict[str, str] = {}
    folder = tmp_path / "outputs" / "flight_recorder"
    process_group.enable_flight_recorder(environ=environ, folder=folder)
    assert environ == {"TORCH_FR_DUMP_TEMP_FILE": f"{folder}/rank_"}
    assert folder.is_dir(), "torch does not create it"


@pytest.mark.parametrize("name", ["TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"])
def test_what_the_user_set_stays(tmp_path: Path, name: str) -> None:
    own = {name: "/elsewhere/rank", "TORCH_NCCL_TRACE_BUFFER_SIZE": "0", "TORCH_NCCL_DUMP_ON_TIMEOUT": "0"}
    environ = dict(own)
    process_group.enable_flight_recorder(environ=environ, folder=tmp_path / "outputs")
    assert environ == own
    assert not (tmp_path / "outputs").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "outputs").write_text("a file")
    environ: dict[str, str] = {}
    process_group.enable_flight_recorder(environ=environ, folder=tmp_path / "outputs" / "flight_recorder")
    assert environ == {}
    assert "no Flight Recorder" in capfd.readouterr().err
