"""A run uses its secrets, and leaves them in no file and on no screen."""

import os
import signal
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from allranks.contract.mpi import Mpi
from allranks.history.records import Status
from allranks.plan.graph import Step
from allranks.workspace import Workspace
from allranks_command import PATIENCE, Fifo, forked, started, write
from mpirun import needs_mpirun

TOKEN = "hunter2-of-hugging-face"
KEY = "c2VjcmV0c2VjcmV0" * 5 + "abcdef" + "=="
SAID = "hunter4-of-an-input"
LINES = ("a1B2c3D4" * 8, "e5F6g7H8" * 8)
SECRETS = (TOKEN, KEY, SAID, *LINES, b64encode(TOKEN.encode()).decode()[:-2], quote(KEY, safe=""))
"""The secrets, and texts that reveal them: the lines of a private key, a token in base64, a key in an address."""

PIPELINE = """\
    type: pipeline
    inputs: {service_password: SAID}
    jobs:
      train:
        type: command
        command: >-
          echo $HF_TOKEN $STORE ${{inputs.service_password}}; echo $HF_TOKEN > ${{outputs.seen}};
          echo "$SIGNING_KEY" | sed "s/^/[0]: /"; echo $HF_TOKEN | base64; echo KEY_IN_ADDRESS;
          printf '{"note": "%s"}' $HF_TOKEN >> $ALLRANKS_REPORT;
          test -e FOLDER/again || { echo "ValueError: $HF_TOKEN is refused"; exit 3; }
        environment: azureml:cpu:1
        inputs: {service_password: "${{parent.inputs.service_password}}"}
        outputs: {seen: {type: uri_file, path: FOLDER/seen}}
        environment_variables:
          HF_TOKEN: TOKEN
          STORE: "AccountName=a;AccountKey=STORE_KEY;EndpointSuffix=x"
          SIGNING_KEY: "-----BEGIN KEY-----\\nLINES\\n-----END KEY-----"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = PIPELINE.replace("FOLDER", str(tmp_path)).replace(": TOKEN", f": {TOKEN}")
    text = text.replace("SAID", SAID).replace("STORE_KEY", KEY).replace("LINES", "\\n".join(LINES))
    write(tmp_path, "pipeline.yml", text.replace("KEY_IN_ADDRESS", quote(KEY, safe="")))
    return tmp_path


def holders(folder: Path) -> list[str]:
    """Return the files below a folder that have a secret."""
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(one.encode() in path.read_bytes() for one in SECRETS)
    ]


@pytest.mark.slow
def test_no_file_and_no_screen_has_them(folder: Path) -> None:
    workspace = folder / ".allranks"
    workspace.mkdir()
    (workspace / "allranks.db").touch(0o644)
    before = os.umask(0)
    try:
        failed = forked("run", "pipeline.yml", "--json", "--instances", "loopback", folder=folder)
    finally:
        os.umask(before)
    assert failed.code == 1
    assert {path.stat().st_mode & 0o777 for path in workspace.glob("allranks.db*")} == {0o600}
    identity = failed.json["id"]
    kept = workspace / "runs" / identity / "secrets.json"
    (log,) = workspace.rglob("std_log.txt")
    # Masked by their values, in their length: these have no shape that could be recognised.
    assert log.read_text().splitlines()[0].split() == [
        "*" * len(TOKEN),
        f"AccountName=a;AccountKey={'*' * len(KEY)};EndpointSuffix=x",
        "*" * len(SAID),
    ]
    assert failed.json["steps"][0]["verdict"]["tail"][-1] == "ValueError: *** is refused"
    assert failed.json["inputs"] == failed.json["steps"][0]["inputs"] == {"service_password": "***"}
    assert holders(workspace) == [str(kept.relative_to(workspace))]
    assert kept.stat().st_mode & 0o777 == 0o600

    (folder / "again").touch()
    resumed = forked("resume", identity, "--instances", "loopback", folder=folder)
    assert resumed.code == 0, resumed.err
    # With the value that the stored plan lacks.
    assert (folder / "seen").read_text().strip() == TOKEN
    assert holders(workspace) == []

    screens = [
        failed,
        resumed,
        forked("show", identity, folder=folder),
        forked("show", identity, "--json", folder=folder),
        forked("run", "pipeline.yml", "--dry-run", folder=folder),
        forked("run", "pipeline.yml", "--dry-run", "--json", folder=folder),
        forked("run", "pipeline.yml", "--set", f"HF_TOKEN={TOKEN}", folder=folder),
    ]
    assert [screen.code for screen in screens[2:]] == [0, 0, 0, 0, 2]
    for screen in screens:
        assert not [secret for secret in SECRETS if secret in screen.out + screen.err]


@pytest.mark.slow
def test_a_killed_run_leaves_them_to_its_user_alone(folder: Path) -> None:
    """Nobody has masked its logs, which are masked when they are read."""
    job = """\
        type: command
        command: echo $HF_TOKEN; echo started > FIFO; exec tail -f /dev/null
        environment: azureml:cpu:1
        environment_variables: {HF_TOKEN: TOKEN}
    """
    workspace = folder / ".allranks"
    write(folder, "job.yml", job.replace("TOKEN}", f"{TOKEN}}}").replace("FIFO", str(workspace / "fifo")))
    with (
        Fifo(workspace / "fifo") as fifo,
        started("run", "job.yml", "--instances", "loopback", folder=folder) as engine,
    ):
        assert fifo.read() == b"started\n"
        (log,) = workspace.rglob("std_log.txt")
        assert log.stat().st_mode & 0o777 == 0o600
        assert TOKEN not in forked("logs", "latest", folder=folder).out
        engine.send_signal(signal.SIGKILL)
        engine.wait(PATIENCE)
    assert workspace.stat().st_mode & 0o777 == 0o700
    assert {Path(file).name for file in holders(workspace)} == {"secrets.json", "std_log.txt"}
    assert all((workspace / file).stat().st_mode & 0o777 == 0o600 for file in holders(workspace))
    for command in ("logs", "show", "why"):
        screen = forked(command, "latest", folder=folder)
        assert "***" in screen.out or command != "logs"
        assert TOKEN not in screen.out + screen.err


@needs_mpirun
def test_the_variables_of_mpirun_are_its_users_alone(run_steps) -> None:
    code = "cd ../../../launcher; stat -c %a . ranks.json events.jsonl; grep -c hunter2 ranks.json; echo $HF_TOKEN"
    before = os.umask(0)
    try:
        step = Step("mpi", code, distribution=Mpi(1), environment_variables={"HF_TOKEN": TOKEN})
        record = run_steps(step, instances="loopback")
    finally:
        os.umask(before)
    assert record.status is Status.COMPLETED
    assert Path(record.steps[0].ranks[0].log).read_text().split() == ["700", "600", "600", "1", "*" * len(TOKEN)]
    assert not (Path(record.steps[0].folder) / "launcher").exists()
    assert not holders(Workspace(Path(record.folder).parents[1]).root)
