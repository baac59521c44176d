"""Steps whose mlflow has another version than the one beside allranks log through MLflow's own server."""

import asyncio
import os
import shutil
import sys
import venv
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from allranks.history.records import Status
from allranks.local.instances.supervisor import Supervisor
from allranks.local.tracking import server
from allranks.local.tracking.server import MlflowServer, is_needed, require_token
from allranks.plan.environment import Environment
from allranks.plan.graph import Graph, Plan, Step
from allranks.workspace import Workspace
from bounded import until

BOUND = 30
"""Seconds after which a test gives up waiting for something that ought to happen at once."""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mlflow beside allranks, with two revisions of the database."""
    folder = _mlflow(tmp_path / "own", "1_a.py", "2_b.py")
    monkeypatch.setattr(server, "find_spec", lambda _: SimpleNamespace(origin=str(folder / "__init__.py")))
    return folder


def _mlflow(folder: Path, *revisions: str) -> Path:
    for name in revisions:
        file = folder / "mlflow" / "store" / "db_migrations" / "versions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder / "mlflow"


@pytest.mark.parametrize(
    ("revisions", "command", "variables", "needed"),
    [
        (("1_a.py", "2_b.py"), "python train.py", {}, False),
        (("1_a.py",), "python train.py", {}, True),
        (("1_a.py", "2_b.py", "3_c.py"), "python train.py", {}, True),
        ((), "python train.py", {}, True),
        (None, "python train.py", {}, False),
        (None, "pip install -r requirements.txt && python train.py", {}, True),
        (("1_a.py",), "python train.py", {"MLFLOW_TRACKING_URI": "http://elsewhere"}, False),
    ],
    ids=["the same", "older", "newer", "skinny", "none", "installs", "elsewhere"],
)
def test_another_version_needs_a_server(
    own: Path,
    tmp_path: Path,
    revisions: tuple[str, ...] | None,
    command: str,
    variables: dict[str, str],
    needed: bool,
) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.10" / "site-packages"
    packages.mkdir(parents=True)
    if revisions is not None:
        (packages / "mlflow").mkdir()
        _mlflow(packages, *revisions)
    step = Step("a", command, environment_variables=variables)
    assert is_needed(step, tmp_path / "venv" / "bin" / "python") is needed


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer right", "200 OK"),
        ("Bearer wrong", "401 Unauthorized"),
        ("right", "401 Unauthorized"),
        (None, "401 Unauthorized"),
    ],
)
def test_only_requests_with_the_token_are_answered(header: str | None, status: str) -> None:
    def application(_: dict[str, str], start_response) -> list[bytes]:  # type: ignore[no-untyped-def]
        start_response("200 OK", [])
        return [b"secret"]

    answers: list[str] = []
    environ = {} if header is None else {"HTTP_AUTHORIZATION": header}
    body = require_token(application, "right")(environ, lambda text, _: answers.append(text))
    assert answers == [status]
    assert (body == [b"secret"]) is (status == "200 OK")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["the run ends", "the supervisor is killed"])
def test_the_server_ends_with_its_run(kind: str, way: str, workspace: Workspace, tmp_path: Path) -> None:
    async def processes() -> list[psutil.Process]:
        supervisor = await Supervisor.start(kind)
        try:
            await MlflowServer(supervisor, workspace, tmp_path).address()
            below = psutil.Process(supervisor._process.pid).children(recursive=True)
            # Its port is open before its program begins.
            until(lambda: any(server.__name__ in process.cmdline() for process in below))
            if way == "the supervisor is killed":
                supervisor._process.kill()
        finally:
            await supervisor.close()
        return below

    assert psutil.wait_procs(asyncio.run(processes()), timeout=BOUND)[1] == []


@pytest.fixture
def other_mlflow(tmp_path: Path) -> Path:
    """An interpreter whose mlflow lacks the last revision of the database, so that it refuses that of allranks."""
    folder = tmp_path / "other"
    venv.create(folder, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    spec = find_spec("mlflow")
    assert spec is not None
    assert spec.origin is not None
    mlflow = Path(spec.origin).parent
    (packages / "others.pth").write_text(str(mlflow.parent))
    shutil.copytree(mlflow, packages / "mlflow", copy_function=os.symlink, ignore=shutil.ignore_patterns("js"))
    revisions = list((packages / "mlflow" / "store" / "db_migrations" / "versions").glob("*_*.py"))
    earlier = {line for path in revisions for line in path.read_text().splitlines() if line.startswith("down_revision")}
    for path in revisions:
        if not any(path.name.partition("_")[0] in line for line in earlier):
            path.unlink()
    return folder / "bin" / "python"


WITHOUT_PROXY = """
import os, urllib.parse
assert urllib.parse.urlsplit(os.environ["MLFLOW_TRACKING_URI"]).hostname in os.environ["no_proxy"].split(",")
"""

AUTOLOGGING = """
mlflow.sklearn.autolog(log_models=False)
from sklearn.linear_model import LogisticRegression
LogisticRegression().fit([[0], [1]], [0, 1])
"""


@pytest.mark.recipe
@pytest.mark.mlflow
def test_a_step_with_another_mlflow_logs(kind: str, other_mlflow: Path, run_steps) -> None:
    script = WITHOUT_PROXY + 'import mlflow\nmlflow.log_metric("loss", 0.5)\n' + AUTOLOGGING
    environment = Environment(interpreter=str(other_mlflow))
    step = Step("train", f"python - <<'END'\n{script}END\n", environment=environment, deterministic=False)
    record = run_steps(plan=Plan("train", Graph((step,))), instances=kind)
    assert record.status is Status.COMPLETED, record.verdict
    metrics = record.step("train").metrics
    assert metrics["loss"][0].value == 0.5
    assert "training_score" in metrics
    assert record.mlflow_run_id is None  # a job without a pipeline has none of its own
