"""What the studio starts: runs, in processes of their own, and the warm reader of documents."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from serving import Client, admitted

import bounded
from allranks.history import locks, stored
from allranks.history.records import Status
from allranks.workspace import Workspace
from allranks_command import PATIENCE, environment, write_job

pytestmark = pytest.mark.slow


def test_a_run_is_started_canceled_and_run_again(studio: Client, root: Path) -> None:
    write_job(root.parent, "echo ${{inputs.text}}; sleep ${{inputs.text}}", inputs={"text": "600"})
    refused = studio.send("POST", "/api/runs/start", {"folder": studio.folder, "path": "job.yml", "inputs": {"x": "1"}})
    assert (refused.status, refused.json["message"].splitlines()[0]) == (400, "input x: the pipeline has no input x")
    with studio.events() as events:
        first = studio.post("/api/runs/start", path="job.yml", inputs={})["run"]
        events.next(kind="rank", run=first, status="Running")
        studio.post("/api/runs/cancel", run=first)
        events.next(kind="run", run=first, status="Canceled")
        assert studio.send("POST", "/api/runs/cancel", {"folder": studio.folder, "run": first}).status == 400
        second = studio.post("/api/runs/rerun", run=first, inputs={"text": "0"})["run"]
        events.next(kind="run", run=second, status="Completed")
    assert studio.get(f"/api/runs/{second}")["inputs"] == {"text": "0"}
    assert studio.get("/api/log", run=second, step="job", rank=0)["text"] == "0\n"


def test_a_run_outlives_the_studio(tmp_path: Path) -> None:
    """And the token is neither among the arguments nor in the environment of a process."""
    write_job(tmp_path, "sleep 600")
    workspace = Workspace.at(tmp_path / ".allranks")
    command = [sys.executable, "-m", "allranks.cli.main", "studio", str(tmp_path), "--no-browser"]
    with bounded.Popen(command, stdout=subprocess.PIPE, env=environment(), encoding="utf-8") as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{40,})", address).groups()  # type: ignore[union-attr]
        for name in ("cmdline", "environ"):
            assert token.encode() not in Path(f"/proc/{process.pid}/{name}").read_bytes()
        assert f"0100007F:{int(port):04X}" in Path("/proc/net/tcp").read_text()
        browser = admitted(int(port), token, tmp_path.name)
        with browser.events():
            run = browser.post("/api/runs/start", path="job.yml", inputs={})["run"]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert token not in rest
    assert rest.count("token=") == 1  # the next one
    assert locks.holder(workspace.run_folder(run)) is not None
    subprocess.run(
        [sys.executable, "-m", "allranks.cli.main", "cancel", run, "--now"],
        cwd=tmp_path,
        env=environment(),
        timeout=PATIENCE,
        check=True,
    )
    assert stored.run(workspace, run).status is Status.CANCELED


def test_a_document_is_edited_here_and_elsewhere(studio: Client, root: Path) -> None:
    path = "pipelines/training.py"
    created = studio.post("/api/document/new", path=path, source="image_classification.py")
    assert [node["name"] for node in created["graph"]["nodes"]] == ["prepare", "train", "evaluate", "register"]
    assert set(created["positions"]) == {"prepare", "train", "evaluate", "register"}
    assert studio.send("POST", "/api/document/new", {"folder": studio.folder, "path": path}).status == 400
    edit = {"op": "set_input", "node": "prepare", "input": "seed", "value": {"kind": "literal", "value": 3}}
    with studio.events() as events:
        edited = studio.post("/api/document/edit", path=path, digest=created["digest"], edits=[edit])
        assert events.next(kind="document")["digest"] == edited["digest"]
        assert "seed=3" in (root.parent / path).read_text()
        (root.parent / path).write_text(edited["text"] + "# more\n")
        changed = events.next(kind="document")
    old: dict[str, Any] = {"folder": studio.folder, "path": path, "digest": created["digest"]}
    conflict = studio.send("POST", "/api/document/undo", old)
    assert conflict.status == 409
    assert conflict.json["document"]["digest"] == changed["digest"]
    assert studio.post("/api/document/undo", path=path, digest=changed["digest"])["text"] == edited["text"]
    assert studio.send("POST", "/api/document/edit", {**old, "edits": [{"op": "nothing"}]}).status == 400


def test_the_palette_and_the_pipelines(studio: Client, root: Path) -> None:
    items = studio.get("/api/palette")
    (train,) = [item for item in items if item["component"] == "library:train_image_classifier"]
    assert {"data", "learning_rate"} <= {port["name"] for port in train["inputs"]}
    assert studio.get("/api/palette") == items
    found = studio.get("/api/pipelines")
    assert {"path": "image_classification.py", "title": "Image classification", "origin": "library"} in found
    assert studio.get("/api/schedules") == []
    studio.post("/api/document/new", path="mine/script.py", source="own_script.py")
    assert (root.parent / "mine/own_scripts/train_digits.py").is_file()
