"""What the tests of allranks and of its packages share: both kinds of instances, a small project, a workspace."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from multiprocessing.util import Finalize
from pathlib import Path

import pytest
from hypothesis import settings

from allranks.history.observer import Observer
from allranks.history.records import RunRecord
from allranks.local import requirements
from allranks.local.engine import run
from allranks.local.instances.supervisor import Supervisor, UnfitError
from allranks.local.options import Options
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from pipeline_files import project

Runner = Callable[..., RunRecord]
ROOT = Path(__file__).parent

# The SDK builds its schemas at its first import in a process, by this switch. `allranks` sets it before; a test that
# imports the SDK itself must not change what the tests after it see.
os.environ["AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"] = "true"
# Read when tqdm is first imported, by whatever does that; `allranks` sets it before the SDK.
os.environ["TQDM_DISABLE"] = "1"
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
# Read when torch is imported. Of several threads, those that wait for another spin, on a core that another test needs.
os.environ["OMP_NUM_THREADS"] = "1"

SLOW_FOLDERS = {
    *("api", "attempt", "azure", "cli", "components", "instances", "forkserver", "launchers", "pipelines"),
}
"""In which most tests start the command, an engine, ranks or a component, submit, or read a whole pipeline of ours:
`make test-quick` leaves them out."""

ON_ONE_WORKER = {"components", "runtime"}
"""Their ranks are forked from a process that imports torch, DeepSpeed and Transformers for 20 s, one on each worker of
pytest-xdist, and many of their tests look at the same jobs."""

SLOW_FILE = re.compile(r"^pytestmark = (\[[^\]]*|.*)\bmark\.(slow|recipe)\b", re.MULTILINE)
"""The mark of a file whose tests are all slow."""

# How long an example takes says nothing about it. Each run of the tests draws others.
settings.register_profile("allranks", max_examples=30, deadline=None, database=None)
settings.load_profile("allranks")


def _works(kind: str) -> bool:
    async def try_it() -> bool:
        try:
            await (await Supervisor.start(kind)).close()
        except UnfitError:
            return False
        return True

    return asyncio.run(try_it())


@pytest.fixture(scope="session")
def rack_works() -> bool:
    return _works("rack")


@pytest.fixture
def kind(rack_works: bool) -> str:
    """The kind of instances that users have by default: the rack, where this machine has user namespaces."""
    return "rack" if rack_works else "loopback"


@pytest.fixture(params=["loopback", "rack"])
def each_kind(request: pytest.FixtureRequest, rack_works: bool) -> str:
    """Both kinds of instances; the rack only where this machine has user namespaces."""
    if request.param == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    return str(request.param)


def pytest_configure() -> None:
    """What the tests and their processes put into the temporary folder, or a library into the user's home when it is
    imported, is gone with the tests. Pytest's own folders stay outside.

    The processes of pytest-xdist have the folders of the one that started them, and below the temporary one a folder
    each: the runs of a user share slots by a file in it.
    """
    gc.disable()  # a tenth of the time in which tests are collected, and it finds nothing to free
    # DeepSpeed offers to be seeded before each test: for that it would be imported in each of pytest's processes, and
    # torch and MLflow with it. Tests draw from generators of their own.
    if randomly := sys.modules.get("pytest_randomly"):
        randomly.entrypoint_reseeds = []
    if "PYTEST_XDIST_WORKER" in os.environ:
        own = Path(os.environ["TMPDIR"]) / os.environ["PYTEST_XDIST_WORKER"]
        own.mkdir(exist_ok=True)
        os.environ["TMPDIR"] = str(own)
        tempfile.tempdir = None  # looked up again
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    # Short: Ray adds up to 66 of the 107 characters that the path of a Unix socket may have, and an instance 18.
    temporary = _folder(tempfile.gettempdir(), prefix="test-")
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None  # looked up again
    # An instance of the rack has a temporary folder of its own, and the machine's home.
    caches = Path.home() / ".cache"
    caches.mkdir(parents=True, exist_ok=True)
    home = _folder(str(caches))
    built = caches / "torch_extensions"  # once, before the tests
    if built.exists():  # a copy: a test that kills a rank leaves its lock there
        shutil.copytree(built, home / ".cache/torch_extensions", ignore=shutil.ignore_patterns("lock"))
    os.environ["HOME"] = str(home)
    _collect_rarely()


def _collect_rarely() -> None:
    """Lets the interpreters of the tests' environments collect garbage rarely until the tests end.

    Most of what they do is importing, and what is imported stays: collecting it took a ninth of the tests' processor
    time, and freed nothing.
    """
    environments = (Path(sysconfig.get_path("purelib")), *ROOT.glob(".venvs/*/lib/python3*/site-packages"))
    for environment in environments:
        file = environment / "collect_rarely.pth"
        with contextlib.suppress(OSError):
            file.write_text("import gc; gc.set_threshold(50_000, 20, 50)\n", encoding="utf-8")
            Finalize(None, file.unlink, kwargs={"missing_ok": True}, exitpriority=-200)


def _folder(parent: str, prefix: str = "allranks-") -> Path:
    folder = tempfile.mkdtemp(prefix=prefix, dir=parent)
    # multiprocessing removes its own folder below it at the exit of this process, with a priority of -100.
    Finalize(None, shutil.rmtree, (folder,), {"ignore_errors": True}, exitpriority=-200)
    return Path(folder)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of which `-m "not slow"` leaves out every test. That takes a third of the time to collect."""
    if config.option.markexpr != "not slow":
        return None
    is_slow = _is_in_slow_folder(collection_path, config) or (
        collection_path.suffix == ".py" and SLOW_FILE.search(collection_path.read_text(encoding="utf-8"))
    )
    return True if is_slow else None


def pytest_itemcollected(item: pytest.Item) -> None:
    folder = item.path.parent.name
    if folder in ON_ONE_WORKER and not item.get_closest_marker("xdist_group"):
        item.add_marker(pytest.mark.xdist_group(folder))
    if _is_in_slow_folder(item.path, item.config) or item.get_closest_marker("recipe"):
        item.add_marker(pytest.mark.slow)


def _is_in_slow_folder(path: Path, config: pytest.Config) -> bool:
    return not SLOW_FOLDERS.isdisjoint(path.relative_to(config.rootpath).parts)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, in whatever order they are: at the end no worker then waits for another's last."""
    items.sort(key=lambda item: "slow" not in item.keywords)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a small project, with a component, its code, and data."""
    monkeypatch.chdir(project(tmp_path))
    return tmp_path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def run_steps(workspace: Workspace, request: pytest.FixtureRequest) -> Runner:
    """Runs steps as a plan, by default on loopback. Only tests of MLflow wait for it: its import takes a second."""
    track = request.node.get_closest_marker("mlflow") is not None

    def run_them(
        *steps: Step, observer: Observer | None = None, plan: Plan | None = None, **options: object
    ) -> RunRecord:
        options.setdefault("instances", "loopback")
        options.setdefault("slots", 8)
        options.setdefault("track", track)
        plan = plan or Plan("plan", Graph(steps))
        checked = Options(**options)  # type: ignore[arg-type]
        requirements.require(plan)
        return run(plan, workspace, checked, observer)

    return run_them
