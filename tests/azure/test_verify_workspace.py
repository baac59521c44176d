"""`allranks verify-workspace` against the fake service, whose jobs the engine runs: nothing differs, and each of twelve
seeded differences is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Command, command, forget_components, only_run, project, quick
from fake.blobs import Blob
from fake.names import SUBSCRIPTION
from fake.service import FakeAzure
from fake.workspaces import DATASTORES

from allranks.azure import polling

__all__ = ["command", "project", "quick"]

PIPELINE = Path(__file__).resolve().parents[2] / "pipelines" / "verify_workspace.py"
# Of what an image has to be, what every machine is that runs these tests.
EXPECTATIONS = "every:\n  python: {version: '>=3.10'}\n"

Record = dict[str, Any]


def change(*keys: str, to: Any) -> Callable[[Record], None]:
    def apply(record: Record) -> None:
        for key in keys[:-1]:
            record = record[key]
        record[keys[-1]] = to

    return apply


def remove(*keys: str) -> Callable[[Record], None]:
    def apply(record: Record) -> None:
        for key in keys[:-1]:
            record = record[key]
        del record[keys[-1]]

    return apply


SEEDED: dict[str, tuple[Callable[[Record], None], tuple[str, str]]] = {
    "a variable that is missing": (remove("variables", "NODE_RANK"), ("variable", "NODE_RANK")),
    "a variable that nobody expects": (change("variables", "AZUREML_NEW", to="1"), ("variable", "AZUREML_NEW")),
    "another value": (change("variables", "WORLD_SIZE", to="2"), ("variable", "WORLD_SIZE")),
    "addresses of another form": (
        change("variables", "AZ_BATCH_NODE_LIST", to="10.0.0.4:22;10.0.0.5:22"),
        ("variable", "AZ_BATCH_NODE_LIST"),
    ),
    "an argument that a shell has changed": (
        change("arguments", to=["record.py", "--folder", "x"]),
        ("argument", "3"),
    ),
    "another user": (change("user", "uid", to=64998), ("user", "uid")),
    "a home that is missing": (change("user", "home exists", to=False), ("user", "home exists")),
    "an input that can be written to": (
        change("paths", "input folder", "writable", to="by anybody"),
        ("path", "input folder: writable"),
    ),
    "another file system": (
        change("paths", "output records", "file system", to="fuse.blobfuse2"),
        ("mount", "output records: file system"),
    ),
    "a smaller /dev/shm": (change("paths", "/dev/shm", "bytes", to=65536), ("mount", "/dev/shm: bytes")),
    "a lower limit": (change("limits", "RLIMIT_NOFILE", to=[1, 1]), ("limit", "RLIMIT_NOFILE")),
    "a master whose name does not resolve": (
        change("instance", "masters resolve", "MASTER_ADDR", to=False),
        ("instance", "MASTER_ADDR resolves"),
    ),
}


def change_records(azure: FakeAzure, name: str, apply: Callable[[Record], None], ranks: tuple[int, ...]) -> None:
    """Change the records of ranks that a run has written to the workspace's storage."""
    _, store, prefix = azure.jobs[name].outputs["records"]
    container = azure.blobs.container(DATASTORES[store])
    for rank in ranks:
        path = f"{prefix}rank-{rank}.json"
        record = json.loads(container[path].read())
        apply(record)
        container[path] = Blob(json.dumps(record).encode())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_report_names_what_differs_and_nothing_else(
    azure: FakeAzure, command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "POLL", 0.5)  # seconds; the machine has other things to do
    monkeypatch.setenv("COLUMNS", "300")
    forget_components()
    (project / "expect.yaml").write_text(EXPECTATIONS)
    options = ("verify-workspace", "--pipeline", str(PIPELINE), "--instances", "loopback", "--json")
    where = ("--yes", "--compute", "cpu-cluster", "--set", "expectations=expect.yaml")

    done = command(*options, *where)
    assert done.code == 0, done.out + done.err
    assert [each for each in done.json["compared"] if each["local"] != each["azure"]] == []
    kinds = {each["kind"] for each in done.json["compared"]}
    assert kinds == {"variable", "argument", "path", "mount", "user", "limit", "instance", "process", "ranks"}
    assert {each["launch"] for each in done.json["compared"]} == {"pytorch", "mpi"}
    assert set(done.json["steps"].values()) == {"Completed"}
    proof = project / "docs" / "azure-proof"
    names = {"README.md", "comparison.json", "preflight.json", "bandwidth.json", "bandwidth.svg", "verification.json"}
    assert {path.name for path in proof.iterdir()} == names
    report = (proof / "README.md").read_text()
    assert "\nNone, in " in report
    run = only_run(azure)
    for private in (run.name, SUBSCRIPTION, "127.", str(project)):
        assert private not in report
    put = [path.split("/")[-4:-2] for method, path, _ in azure.requests if method == "PUT" and "/versions/" in path]
    registered = {(kind, name) for kind, name in put if kind != "codes"}
    assert registered == {("components", "azureml_anonymous"), ("environments", "CliV2AnonymousEnvironment")}

    seeded = [apply for apply, _ in SEEDED.values()]
    for apply, rank in zip(seeded, (0, 1, 2, 3) * 3, strict=True):
        change_records(azure, run.name, apply, (rank,))
    forget_components()
    again = command(*options, "--job", run.name)
    assert again.code == 1
    differing = {
        (each["launch"], each["kind"], each["name"], tuple(each["ranks"]))
        for each in again.json["compared"]
        if each["local"] != each["azure"]
    }
    expected = {("pytorch", *fact, (rank,)) for (_, fact), rank in zip(SEEDED.values(), (0, 1, 2, 3) * 3, strict=True)}
    assert expected <= differing
