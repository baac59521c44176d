"""A run's snapshot, submit, register and export all send the same files of a project that is full of other things."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Command, command, quick
from fake.service import FakeAzure

import allranks
from allranks.plan.reader import read_plan
from allranks_command import write

__all__ = ["command", "quick"]

COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: greet
version: "1"
display_name: Greet
description: Greets somebody.
is_deterministic: true
outputs:
  said: {type: uri_folder, description: What was said.}
code: .
additional_includes: [../../lib, ../../notes.zip]
environment: file:../../environments/small/environment.yaml
command: python greet.py ${{outputs.said}}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:cpu-cluster}
jobs:
  first: {type: command, component: ./components/greet/component.yaml}
  second: {type: command, component: ./components/greet/component.yaml}
"""
SENT = {
    ".amlignore": "*.bin\n!kept.bin\n/data/\n",
    "component.yaml": COMPONENT,
    "greet.py": "from allranks import runtime\n\nprint('hello')\n",
    "kept.bin": "k",
    "linked/.gitignore": "*.tmp\n",
    "linked/tool.py": "x = 1\n",
    "lib/.gitignore": "*.tmp\n",
    "lib/tool.py": "x = 1\n",
    "sibling/tool.py": "x = 2\n",
}
"""What leaves of the code, and the archive that the SDK makes of a folder."""
PACKAGE = Path(allranks.__file__).parent
PARTS = ("__init__.py", "errors.py", "py.typed", "version.py", "contract/**/*", "hardware/**/*", "runtime/**/*")
RUNTIME = {
    f"allranks/{path.relative_to(PACKAGE).as_posix()}": path.read_bytes()
    for part in PARTS
    for path in PACKAGE.glob(part)
    if path.is_file() and path.suffix != ".pyc"
}
"""What is added, because greet.py imports it."""
CONTEXT = {
    "Dockerfile": "FROM ubuntu:24.04 AS base\nFROM base AS small\nCOPY setup.sh /\n",
    "environment.yaml": "name: small\nbuild: {path: .}\n",
    "setup.sh": "true\n",
}
"""What leaves of the build context: its Dockerfile includes its first line, and setup.sh is a link."""
SECRET = "s3cr3t"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of these files, with secrets, caches, ignored files and links in its code and its build context."""
    folder = tmp_path / "project"
    files = {f"components/greet/{name}": text for name, text in SENT.items() if "/" not in name}
    files |= {name: text for name, text in SENT.items() if name.startswith("lib/")}
    files |= {f"environments/small/{name}": text for name, text in CONTEXT.items()}
    for name, text in files.items():
        write(folder, name, text)
    base, *own = CONTEXT["Dockerfile"].splitlines(keepends=True)
    write(folder, "environments/small/Dockerfile", "".join(["# allranks: include ../base.Dockerfile\n", *own]))
    write(folder, "environments/base.Dockerfile", base)
    (folder / "environments/small/setup.sh").rename(folder / "environments/setup.sh")
    (folder / "environments/small/setup.sh").symlink_to("../setup.sh")
    (folder / "components/greet/linked").symlink_to("../../lib")
    (folder / "components/greet/sibling").symlink_to(tmp_path / "sibling")
    write(folder, "pipeline.yaml", PIPELINE)
    write(folder, "notes/note.txt", "n")
    write(tmp_path, "sibling/tool.py", SENT["sibling/tool.py"])
    write(tmp_path, ".aws/config", SECRET)
    for place in ("components/greet", "lib", "environments/small", "notes", "."):
        for name in (".git/config", ".env", "id_rsa", "key.pem", "__pycache__/a.pyc", ".venv/bin/python"):
            write(folder, f"{place}/{name}", SECRET)
        (folder / place / "keys").symlink_to(tmp_path / ".aws")
        (folder / place / "password").symlink_to(".env")
    write(folder, "components/greet/model.bin", SECRET)
    write(folder, "components/greet/data/large.csv", SECRET)
    write(folder, "lib/draft.tmp", SECRET)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def texts(files: dict[str, bytes]) -> dict[str, str]:
    return {name: content.decode() for name, content in files.items()}


def of_snapshot(azure: FakeAzure, project: Path, command: Command) -> dict[str, bytes]:
    snapshots = project.parent / "snapshots"
    first, second = read_plan(str(project / "pipeline.yaml"), {}, snapshots).graph.nodes
    assert first.code == second.code
    assert first.code is not None
    return content(Path(first.code.folder))


def of_submit(azure: FakeAzure, project: Path, command: Command) -> dict[str, bytes]:
    done = command("submit", "pipeline.yaml", "--no-stream")
    assert done.code == 0, done.err
    assert texts(uploaded(azure, "Dockerfile")) == CONTEXT
    return uploaded(azure, "greet.py")


def of_register(azure: FakeAzure, project: Path, command: Command) -> dict[str, bytes]:
    done = command("register")
    assert done.code == 0, done.err
    assert texts(uploaded(azure, "Dockerfile")) == CONTEXT
    return uploaded(azure, "greet.py")


def of_export(azure: FakeAzure, project: Path, command: Command) -> dict[str, bytes]:
    done = command("register", "--to", str(project.parent / "out"))
    assert done.code == 0, done.err
    assert texts(content(project.parent / "out/environments/small/context")) == CONTEXT
    return content(project.parent / "out/components/greet/code")


def uploaded(azure: FakeAzure, name: str) -> dict[str, bytes]:
    """The blobs of the one upload with that file in its root."""
    blobs = {path: blob for container in azure.blobs.containers.values() for path, blob in container.items()}
    everything = b"".join(blob.content for blob in blobs.values())
    assert SECRET.encode() not in everything
    (prefix,) = {path.removesuffix(name) for path in blobs if path.endswith(f"/{name}")}
    return {path.removeprefix(prefix): blob.content for path, blob in blobs.items() if path.startswith(prefix)}


@pytest.mark.parametrize("way", [of_snapshot, of_submit, of_register, of_export])
def test_the_same_files_leave_every_way(
    azure: FakeAzure,
    project: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[FakeAzure, Path, Command], dict[str, bytes]],
) -> None:
    monkeypatch.chdir(project)
    sent = way(azure, project, command)
    archive = sent.pop("notes.zip")
    runtime = {name: sent.pop(name) for name in list(sent) if name.startswith("allranks/")}
    assert texts(sent) == SENT
    assert runtime == RUNTIME
    assert archive.count(b"note.txt") == 2, "once in the archive, and in its directory"
    assert b"id_rsa" not in archive


LEFT_OUT = {
    ".env": "settings with secrets",
    ".git/": "version control",
    "key.pem": "a private key",
    "data/": "named in .amlignore",
    "lib/draft.tmp": "named in .gitignore",
    "keys/": "a file with credentials",
    "password": "settings with secrets",
}
"""Some of what stays."""


def test_a_dry_run_prints_the_list_and_its_size(azure: FakeAzure, project: Path, command: Command) -> None:
    def check(found: dict[str, Any], prefix: str = "") -> None:
        assert set(found["files"]) == {f"{prefix}{name}" for name in (*SENT, *RUNTIME, "notes.zip")}
        assert found["size"] > sum(map(len, SENT.values()))
        left_out = {one["name"].removeprefix(prefix): one["reason"] for one in found["left_out"]}
        assert {name: left_out.get(name) for name in LEFT_OUT} == LEFT_OUT

    code, context = command("run", "pipeline.yaml", "--dry-run", "--instances", "loopback", "--json").json["uploads"]
    check(code)
    assert (code["kind"], code["steps"], set(context["files"])) == ("code", ["first", "second"], set(CONTEXT))
    (row,) = [row for row in command("register", "--dry-run", "--json").json["assets"] if row["kind"] == "component"]
    check(row["upload"], "code/")
    for words in (["run", "pipeline.yaml", "--instances", "loopback"], ["submit", "pipeline.yaml"], ["register"]):
        done = command(*words, "--dry-run")
        assert done.code == 0, done.err
        lines = [line.strip() for line in (done.out + done.err).splitlines()]
        assert any(f"{len(SENT) + len(RUNTIME) + 1} files, " in line for line in lines)
        assert any(line.endswith("kept.bin, notes.zip") for line in lines)
        assert any("lib/password" in line and line.endswith("  settings with secrets") for line in lines)
