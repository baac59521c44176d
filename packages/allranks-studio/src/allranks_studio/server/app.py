"""The server: its routes, and its start on a free port of this machine."""

import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import PathLike, StaticFiles

from allranks.errors import InputError, Problem
from allranks_studio.server.access import Access, Session, policy
from allranks_studio.server.answers import answer_of, route
from allranks_studio.server.folders import Folder
from allranks_studio.server.studio import Studio

STATIC = Path(__file__).resolve().parents[1] / "static"
"""What npm builds."""
_NOT_BUILT = """<!doctype html><title>allranks studio</title><p>The front end is not built. Install Node.js, and run:
<pre>cd packages/allranks-studio/web
npm ci
npm run build</pre>"""


class _Files(StaticFiles):
    """The files of the front end. The names of chunks have their digest, so browsers keep them."""

    def file_response(self, full_path: PathLike, *arguments: Any) -> Response:
        answer = super().file_response(full_path, *arguments)
        is_chunk = Path(full_path).parent.name == "chunks"
        answer.headers["cache-control"] = "public, max-age=31536000, immutable" if is_chunk else "no-cache"
        return answer


def make_app(folders: Mapping[str, Folder], session: Session) -> Starlette:
    """Return the application."""
    studio = Studio(folders)
    app = Starlette(
        routes=[
            Mount(
                "/api",
                routes=[
                    route("/state", "studio.state"),
                    route("/runs", "runs.runs"),
                    route("/sparklines", "runs.sparklines"),
                    route("/runs/{run}", "run.run"),
                    route("/page", "run.page"),
                    route("/curves", "curves.curves"),
                    route("/usage", "curves.usage"),
                    route("/log", "logs.log"),
                    route("/log/search", "logs.search"),
                    route("/compare", "compare.compare"),
                    route("/schedules", "schedules.schedules"),
                    route("/runs/cancel", "actions.cancel", changes=True),
                    route("/runs/{action}", "actions.begin", changes=True),
                    route("/document", "documents.document"),
                    route("/document/export", "documents.export"),
                    route("/document/new", "documents.new", changes=True),
                    route("/document/positions", "moved_nodes.move", changes=True),
                    route("/document/{change}", "documents.change", changes=True),
                    route("/palette", "palette.palette"),
                    route("/pipelines", "palette.pipelines"),
                    Route("/events", studio.events.stream),
                ],
            ),
            Mount("/static", _Files(directory=STATIC, check_dir=False)),
            Route("/{path:path}", _index),
        ],
        middleware=[
            Middleware(Access, session=session),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=1),
        ],
        exception_handlers={HTTPException: lambda _, error: answer_of(error)},
        lifespan=studio.lifespan,
    )
    app.state.studio = studio
    return app


def serve(folders: Mapping[str, Folder], port: int, browser: Any) -> None:
    """Serve the folders until a signal ends it. browser: is called with an address, to open it, or is None

    Raise InputError if the port is taken.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(Problem(f"--port {port}", str(error.strerror), "a free port", "0 chooses one")) from None
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/?token="

    def report(token: str) -> None:
        print(f"allranks studio, for one browser: {address}{token}", flush=True)

    session = Session(listener.getsockname()[1], report)
    report(session.token)
    if browser is not None:
        browser(address + session.token)
    make_server(make_app(folders, session)).run(sockets=[listener])


def make_server(app: Starlette) -> uvicorn.Server:
    """Return a server of the application. It ends the streams of events after a second."""
    config = uvicorn.Config(
        app,
        http="h11",  # it refuses a request with two hosts
        log_level="critical",
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


async def _index(_: Request) -> Response:
    """Answer every address of the front end with its page, whose nonce allows the styles of the code editor."""
    file = STATIC / "index.html"
    if not file.is_file():
        return HTMLResponse(_NOT_BUILT, 503)
    nonce = secrets.token_urlsafe(16)
    text = file.read_text(encoding="utf-8").replace("<head>", f'<head>\n    <meta name="nonce" content="{nonce}">', 1)
    return HTMLResponse(text, headers={"content-security-policy": policy(nonce)})
