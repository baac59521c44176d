"""Azure Storage and S3, of which each has an emulator on loopback: folders arrive, and outputs are uploaded."""

import base64
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bounded
from allranks.history.records import Status
from allranks.local.data import cache, storage
from allranks.local.engine import run
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import Input, Output
from allranks.plan.ports import Path as DataPath
from allranks.workspace import Workspace

pytestmark = pytest.mark.slow  # starts services

Environment = Callable[[str, str], None]


ACCOUNT, KEY = "wsstorage", base64.b64encode(bytes(range(64))).decode()
AZURITE = Path(__file__).parents[3] / ".azurite/node_modules/azurite/dist/src/blob/main.js"
"""Microsoft's emulator of Azure Storage, where `make azurite` has installed it."""
# Without the last one it reports to Microsoft how it is used.
OPTIONS = "--blobHost 127.0.0.1 --blobPort 0 --inMemoryPersistence --silent --skipApiVersionCheck --disableTelemetry"


@contextlib.contextmanager
def _azure(setenv: Environment) -> Iterator[str]:
    pytest.importorskip("adlfs")
    if not AZURITE.exists() or not shutil.which("node"):
        pytest.skip("Azurite is not installed: make azurite")
    setenv("AZURITE_ACCOUNTS", f"{ACCOUNT}:{KEY}")
    with (
        tempfile.TemporaryDirectory() as folder,
        bounded.Popen(["node", AZURITE, *OPTIONS.split()], cwd=folder, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            listens = next(line for line in process.stdout or () if "successfully listens on" in line)
            address = f"http://127.0.0.1:{listens.strip().rpartition(':')[2]}/{ACCOUNT}"
            account = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={address}"
            setenv("AZURE_STORAGE_CONNECTION_STRING", f"DefaultEndpointsProtocol=http;{account}")
            _made("az://data")
            yield f"abfss://data@{ACCOUNT}.dfs.core.windows.net"
        finally:
            process.kill()


@contextlib.contextmanager
def _s3(setenv: Environment) -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    server.start()
    try:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            setenv(name, "testing")
        setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.get_host_and_port()[1]}")
        setenv("AWS_DEFAULT_REGION", "us-east-1")
        _made("s3://data")
        yield "s3://data"
    finally:
        server.stop()


def _made(uri: str) -> None:
    import fsspec

    system, path = fsspec.core.url_to_fs(uri, skip_instance_cache=True)
    with contextlib.suppress(FileExistsError):  # moto keeps its buckets
        system.mkdir(path)


# moto and what s3fs needs have 100 MB: they are of the extra `recipes`.
SERVICES = [
    pytest.param(_azure, marks=pytest.mark.slow, id="azure"),
    pytest.param(_s3, marks=pytest.mark.recipe, id="s3"),
]


@pytest.mark.parametrize("service", SERVICES)
def test_a_pipeline_reads_a_folder_and_writes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Callable[..., contextlib.AbstractContextManager[str]]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "source"
    (source / "b").mkdir(parents=True)
    for name in ("a.txt", "b/c.txt"):
        (source / name).write_text(name, "utf-8")
    with service(monkeypatch.setenv) as root:
        storage.upload(source, f"{root}/in")
        step = Step(
            "copy",
            "cp -r ${{inputs.data}}/. ${{outputs.copy}}/",
            inputs=(Input("data", "uri_folder", DataPath(f"{root}/in/"), "ro_mount"),),
            outputs=(Output("copy", "uri_folder", "upload", f"{root}/out/${{{{name}}}}"),),
        )
        record = run(Plan("p", Graph((step,))), Workspace(tmp_path / "w"), Options("loopback", track=False))
        assert record.status is Status.COMPLETED, record.verdict
        (note,) = record.steps[0].notes
        name = f"{root}/out/{record.id}:copy" if f"{record.id}:copy" in note else note.rpartition(" ")[2]
        assert note == f"output copy is uploaded to {name}"
        copy = cache.local_copy(name, "uri_folder")
        files = {path.relative_to(copy.path).as_posix(): path for path in copy.path.rglob("*") if path.is_file()}
        assert {name: path.read_text("utf-8") for name, path in files.items()} == {
            "a.txt": "a.txt",
            "b/c.txt": "b/c.txt",
        }
        file = cache.local_copy(f"{root}/in/a.txt", "uri_file")
        assert file.path.read_text("utf-8") == "a.txt"
        absent = root.replace("data", "none")
        for uri, kind in ((f"{root}/none", "uri_folder"), (f"{root}/none", "uri_file"), (absent, "uri_folder")):
            with pytest.raises(storage.StorageError, match="no such file or folder"):
                storage.find(uri, kind)
