"""MLflow's own server, for steps whose mlflow has another version than the one beside allranks: each version has its
own schema of the database, so such a step cannot log to the database of the run itself.

A run starts at most one, which the supervisor ends with the run. In the rack it listens on the network of the run's
instances, elsewhere on loopback. It answers only requests with the token of the run, which MLflow's clients send.
"""

import asyncio
import hmac
import os
import secrets
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from allranks.contract.commands import PIP_INSTALL
from allranks.local import installed
from allranks.local.instances.kernel import die_with_parent
from allranks.local.instances.supervisor import Program, Supervisor
from allranks.local.tracking.tracker import STORES, import_quickly
from allranks.plan.graph import Step
from allranks.workspace import Workspace

LOG = "mlflow-server.log"
"""The name of its log in the run's folder."""

_SCHEMA = "store/db_migrations/versions"
URI, _TOKEN = "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"


def is_needed(step: Step, interpreter: Path) -> bool:
    """Return whether a step needs the server: its mlflow does not fit the database, or may be replaced by its command,
    which installs packages."""
    if URI in step.environment_variables:
        return False  # it logs elsewhere
    found = (folder / "mlflow" for folder in installed.folders(interpreter))
    mlflow = next((folder for folder in found if folder.is_dir()), None)
    spec = find_spec("mlflow")
    own = Path(spec.origin if spec and spec.origin else "").parent
    return bool(PIP_INSTALL.search(step.command)) or (mlflow is not None and _schema(mlflow) != _schema(own))


def _schema(mlflow: Path) -> set[str]:
    """Return the names of an mlflow's database revisions; none for mlflow-skinny."""
    return {path.name for path in (mlflow / _SCHEMA).glob("*.py")}


@dataclass(frozen=True)
class ServerAddress:
    """The address of the server for ranks, and the token that they need."""

    host: str
    port: int
    token: str

    @property
    def uri(self) -> str:
        return f"http://{self.host}:{self.port}"


class MlflowServer:
    """The server of a run. It starts when the first step needs it."""

    def __init__(self, supervisor: Supervisor, workspace: Workspace, folder: Path) -> None:
        """folder: the folder of the run"""
        self._supervisor = supervisor
        self._workspace = workspace
        self._folder = folder
        self._starting: asyncio.Task[ServerAddress] | None = None

    async def address(self) -> ServerAddress:
        """Return the address. Start the server if it does not run. Raise OSError on failure."""
        self._starting = self._starting or asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> ServerAddress:
        token = secrets.token_urlsafe(32)
        artifacts = self._workspace.tracked_files.as_uri()
        command = (sys.executable, "-m", __name__, self._workspace.tracking_uri, artifacts)
        environment = {**os.environ, _TOKEN: token}
        program = Program("mlflow", command, environment, str(self._folder), str(self._folder / LOG))
        host, port = await self._supervisor.serve(program)
        return ServerAddress(host, port, token)


def main(database: str, artifacts: str, descriptor: str, supervisor: str) -> None:
    """Serve until the supervisor ends.

    database, artifacts: URIs of the workspace's database and artifacts
    descriptor:          the descriptor of the listening socket
    supervisor:          its process id
    """
    die_with_parent()
    if os.getppid() != int(supervisor):
        return  # the supervisor ended before `die_with_parent`
    import_quickly("mlflow.server", *STORES)
    # The server is a process of its own: the tracker needs none of this.
    from mlflow.server import app
    from mlflow.server.handlers import initialize_backend_stores
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        def log_request(self, *_: object) -> None:
            """Log no requests."""

    token = os.environ.pop(_TOKEN)
    initialize_backend_stores(database, default_artifact_root=artifacts)
    application = require_token(app.wsgi_app, token)
    make_server("", 0, application, threaded=True, request_handler=Handler, fd=int(descriptor)).serve_forever()


def require_token(application: Any, token: str) -> Any:
    """Return a WSGI application that passes requests with this bearer token to another one, and rejects all others."""
    expected = f"Bearer {token}".encode()

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        if hmac.compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode("latin-1"), expected):
            return application(environ, start_response)
        start_response("401 Unauthorized", [("Content-Type", "text/plain")])
        return [b"the token of the run is missing\n"]

    return answer


if __name__ == "__main__":
    main(*sys.argv[1:])
