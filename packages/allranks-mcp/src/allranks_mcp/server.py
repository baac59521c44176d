"""The server: the tools with their schemas, over standard input and output or HTTP."""

import functools
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ContentBlock, TextContent, ToolAnnotations
from pydantic import AnyHttpUrl
from pydantic_core import to_json, to_jsonable_python

from allranks.contract.report import truncated
from allranks.errors import InputError, Problem
from allranks.local.stop_signals import STOPS
from allranks.secrets import redact
from allranks.version import __version__
from allranks_mcp.tools import Tools

_HINT = """Check a pipeline after each change. If a run has failed, ask why first, then read its logs. explain
says what a code or a rule in a message means."""

_LONGEST = 4000
"""Maximum characters of a text in a result. A longer one loses its middle."""


def serve(tools: Tools, port: int | None) -> None:
    """Serve the tools until the client or a signal ends it.

    port: of HTTP on 127.0.0.1; None: standard input and output

    Raise InputError if the port is taken.
    """
    if port is None:
        for number in STOPS:  # the SDK would first wait for a line
            signal.signal(number, signal.SIG_DFL)
        make_server(tools).run()
        return
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(Problem(f"--http {port}", str(error.strerror), "a free port", "0 chooses one")) from None
    token, port = secrets.token_urlsafe(32), listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    auth = AuthSettings(issuer_url=AnyHttpUrl(address), resource_server_url=None)
    # For an address of this machine only, the SDK refuses other Hosts and Origins, such as another site's in a browser.
    app = make_server(tools, auth=auth, token_verifier=_Token(token)).streamable_http_app(host="127.0.0.1")
    print(f"{address}/mcp\nAuthorization: Bearer {token}", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


class _Token(NamedTuple):
    """The only token that is accepted."""

    token: str

    async def verify_token(self, token: str) -> AccessToken | None:
        is_ours = secrets.compare_digest(token.encode(), self.token.encode())
        return AccessToken(token=token, client_id="agent", scopes=[]) if is_ours else None


def make_server(tools: Tools, **settings: Any) -> MCPServer[Any]:
    """Return the server of the tools. settings: of MCPServer, for HTTP"""
    server: MCPServer[Any] = MCPServer(
        "allranks", instructions=_HINT, version=__version__, log_level="WARNING", **settings
    )
    for function in (tools.check, tools.plan, tools.run, tools.runs, tools.why, tools.explain, tools.logs, tools.diff):
        hints = ToolAnnotations(read_only_hint=function != tools.run, destructive_hint=False)
        server.add_tool(_answering(function), annotations=hints)
    return server


def _answering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool whose result is short and without secrets, and whose error is a message for the model."""

    @functools.wraps(function)  # the SDK makes the schemas from the signature
    def answer(**arguments: Any) -> CallToolResult:
        try:
            result = _shown(to_jsonable_python(function(**arguments)))
        except InputError as error:
            return CallToolResult(content=[_text(_shown(str(error)))], is_error=True)
        # The SDK's own text is indented, which takes a third more.
        content = [_text(result if isinstance(result, str) else to_json(result).decode())]
        structured = result if isinstance(result, dict) else {"result": result}
        return CallToolResult(content=content, structured_content=structured)

    return answer


def _text(text: str) -> ContentBlock:
    return TextContent(type="text", text=text)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items()}
    if isinstance(value, list):
        return list(map(_shown, value))
    return truncated(redact(value), _LONGEST) if isinstance(value, str) else value
