"""Data behind URIs: it arrives whole, however often the connection is cut off, and once; what fails leaves nothing."""

import contextlib
import json
import random
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.history.records import Status
from allranks.local.data import cache, storage
from allranks.local.data.inputs import fetch_data
from allranks.local.data.storage import StorageError
from allranks.local.engine import run, stored_plan
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, Input, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

sys.path.insert(0, str(Path(__file__).parent))
from range_server import Files, served

pytest.importorskip("aiohttp")
registry = pytest.importorskip("fsspec.registry")

BODY = random.Random(1).randbytes(9_000_000)
TABLE = b"id,text\n" + b"".join(b'%d,"a\nb"\n' % number for number in range(1000))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_TRIES", 3)


def copied(uri: str, kind: str = "uri_file", **options: Any) -> cache.Copy:
    return cache.local_copy(uri, kind, **options)


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache/allranks/data").glob("*/entry.json"))


def firsts(files: Files) -> list[int]:
    return [start for method, start in files.requests if method == "GET"]


def test_a_download_that_is_cut_off_at_random_arrives_whole_and_once(tmp_path: Path) -> None:
    with served({"/a/x.bin": BODY}, seed=3) as files:
        copy = copied(f"{files.uri}/a/x.bin?sig=abcdefghij")
        assert copy.path.name == "x.bin"
        assert copy.path.read_bytes() == BODY
        # No byte that has arrived is asked for again, but those of the block that was cut off.
        assert firsts(files) == sorted(firsts(files))
        files.requests.clear()
        assert copied(f"{files.uri}/a/x.bin?sig=another123") == copy
        assert firsts(files) == []
        files.content["/a/x.bin"] = b"new"
        assert copied(f"{files.uri}/a/x.bin").path.read_bytes() == b"new"
    (text, _) = (path.read_text("utf-8") for path in entries(tmp_path))
    assert "abcdefghij" not in text
    assert json.loads(text)["files"]["x.bin"]["sha256"][:16] in copy.text or "new" not in copy.text


def test_the_next_download_goes_on_where_one_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served({"/x.bin": BODY}) as files:
        files.breaks_at = 5_000_000
        monkeypatch.setattr(cache, "_TRIES", 1)
        with pytest.raises(StorageError):
            copied(f"{files.uri}/x.bin")
        assert entries(tmp_path) == []
        files.breaks_at = None
        files.requests.clear()
        assert copied(f"{files.uri}/x.bin").path.read_bytes() == BODY
        assert firsts(files)[0] >= 4_000_000


def test_a_server_without_ranges_sends_all_of_it() -> None:
    with served({"/x.bin": BODY}, ranges=False) as files:
        assert copied(f"{files.uri}/x.bin").path.read_bytes() == BODY


def test_without_the_service_the_last_copy_is_used(tmp_path: Path) -> None:
    with served({"/x.bin": b"abc"}) as files:
        uri = f"{files.uri}/x.bin"
        with pytest.raises(StorageError, match="not in the cache"):
            copied(uri, offline=True)
        copy = copied(uri)
        assert copied(uri, offline=True) == copy
    assert copied(uri).path == copy.path
    assert "so this is the last copy" in copied(uri).text


FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    "absent": ({}, "the service has no such file or folder", "correct the URI"),
    "refused": ({"denied": 403}, "the credentials were refused or are missing", "use a URL that needs no credentials"),
}


@pytest.mark.parametrize(("settings", "found", "fix"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_one_message_and_leaves_nothing(
    tmp_path: Path, settings: dict[str, Any], found: str, fix: str
) -> None:
    with served({"/x.bin": b"abc"}, **settings) as files:
        uri = f"{files.uri}/{'y' if not settings else 'x'}.bin?sig=abcdefghij"
        step = Step("train", "true", inputs=(Input("data", "uri_file", GraphInput("table"), "ro_mount"),))
        plan = Plan("p", Graph((step,), (Input("table", "uri_file", DataPath(uri), "ro_mount"),)), source="p.py")
        with pytest.raises(InputError) as caught:
            fetch_data(plan, Workspace(tmp_path / "w"))
    (problem,) = caught.value.problems
    assert problem.where == "pipeline p, key inputs.table (p.py)"
    assert found in problem.found
    assert fix in problem.fix
    assert "abcdefghij" not in str(problem)
    assert entries(tmp_path) == []
    assert [path for path in (tmp_path / "cache").rglob("*.bin*") if path.stat().st_size] == []


MISSING = {
    "https://host/x.csv": ("aiohttp", "http"),
    "https://account.blob.core.windows.net/data/x/": ("adlfs", "azure-storage"),
    "abfss://data@account.dfs.core.windows.net/x": ("adlfs", "azure-storage"),
    "wasbs://data@account.blob.core.windows.net/x": ("adlfs", "azure-storage"),
    "az://data/x": ("adlfs", "azure-storage"),
    "s3://data/x": ("s3fs", "s3"),
    "gs://data/x": ("gcsfs", "gs"),
    "hf://datasets/a/b": ("huggingface_hub", "hf"),
}


@pytest.mark.parametrize(("uri", "package", "extra"), [(uri, *value) for uri, value in MISSING.items()], ids=MISSING)
def test_a_missing_library_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, uri: str, package: str, extra: str
) -> None:
    monkeypatch.delitem(registry.known_implementations, "abfss", raising=False)  # known since adlfs is installed
    for name in list(registry._registry):
        monkeypatch.delitem(registry._registry, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(StorageError) as caught:
        storage.find(uri, "uri_file" if uri.endswith(".csv") else "uri_folder")
    assert caught.value.fix == f'pip install "allranks[{extra}]"'


def test_an_account_that_cannot_be_reached_fails_within_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("adlfs")
    from azure.core.pipeline.transport import AsyncHttpTransport

    waits = []

    async def waited(_: object, duration: float) -> None:
        waits.append(duration)

    monkeypatch.setattr(AsyncHttpTransport, "sleep", waited)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{closed.getsockname()[1]}/account"
        key = "AccountName=account;AccountKey=a2V5"
        monkeypatch.setenv(
            "AZURE_STORAGE_CONNECTION_STRING", f"DefaultEndpointsProtocol=http;{key};BlobEndpoint={endpoint}"
        )
        with pytest.raises(StorageError, match="Cannot connect to host"):
            storage.find("az://data/x", "uri_folder")
    assert sum(waits) <= 2


PUBLIC = {
    "public": (None, "data"),
    "private": (PermissionError("403"), "the credentials were refused or are missing: DefaultAzureCredential"),
    "absent or private": (
        FileNotFoundError("x"),
        "the credentials were refused or are missing: DefaultAzureCredential",
    ),
    "unreachable": (ConnectionError("no route to host"), "no route to host"),
}


@pytest.mark.parametrize(("error", "outcome"), PUBLIC.values(), ids=PUBLIC)
def test_without_a_login_a_container_is_read_if_it_is_public(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, outcome: str
) -> None:
    def found(uri: str, kind: str, anon: bool = False) -> str:
        failure = error if anon else PermissionError("DefaultAzureCredential failed to retrieve a token")
        if failure:
            raise failure
        return "data"

    monkeypatch.setattr(storage, "_find", found)
    expected = pytest.raises(StorageError, match=outcome) if error else contextlib.nullcontext()
    with expected:
        assert storage.find("wasbs://data@account.blob.core.windows.net/x", "uri_folder") == outcome


def test_a_download_that_does_not_fit_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with served({"/x.bin": bytes(2000)}) as files, pytest.raises(StorageError, match=r"it has 2.0 kB, but .* 1.0 kB"):
        copied(f"{files.uri}/x.bin")


def test_a_run_has_a_copy_and_a_record_without_secrets(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    with served({"/t.csv": TABLE}) as files:
        uri = f"{files.uri}/t.csv?sig=abcdefghij"
        ports = (Input("data", "uri_file", GraphInput("table"), "download"),)
        step = Step("count", "wc -l < ${{inputs.data}}", inputs=ports, outputs=(Output("model", "uri_folder"),))
        plan = Plan("p", Graph((step,), (Input("table", "uri_file", DataPath(uri), "ro_mount"),)))
        options = Options("loopback", track=False, sample="1%")
        record = run(plan, workspace, options)
    assert record.status is Status.COMPLETED
    assert Path(record.steps[0].ranks[0].log).read_text("utf-8").strip() == "21"  # 10 rows of 2 lines, and the header
    (note,) = record.notes
    assert note.startswith(f"input table: {files.uri}/t.csv?sig=***: 9.9 kB, sha256 ")
    assert note.endswith("; sample 1%: rows of t.csv")
    stored = (tmp_path / "w/allranks.db").read_bytes()
    assert b"abcdefghij" not in stored
    # Without the service and the option, the same run has the same data.
    again = run(stored_plan(record, workspace), workspace, Options("loopback", track=False))
    assert again.steps[0].reused_from == record.id
    assert again.notes == record.notes
