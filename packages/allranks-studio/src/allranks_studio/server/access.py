"""Who may use the server: the browser of the person who started it, on this machine, from this server's own pages.

Everything below /api needs the cookie, which is exchanged for a token that is valid once. What is outside of /api is
the same for everybody: the files of the front end.
"""

import hmac
import json
import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 4 << 20
"""Maximum bytes of the body of a request."""
_MOST_READ = 16 * LARGEST_BODY

_LOG = logging.getLogger(__name__)
_EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass
class Session:
    """The secrets of one server. report: is called with the next token when one has been used"""

    port: int
    report: Callable[[str], object] = bool
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers send a cookie to every port of a host."""
        return f"allranks-studio-{self.port}"

    def use(self, token: str) -> bool:
        """Return whether a token is valid, and replace it if it is."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return False
        self.token = secrets.token_urlsafe(32)
        self.report(self.token)
        return True

    def has_key(self, cookies: str) -> bool:
        """Return whether the header with the cookies of a request has this session's."""
        # Cookies of other servers on this host may be of any form.
        parts = (part.strip().partition("=") for part in cookies.split(";"))
        return any(
            hmac.compare_digest(key.encode(), self.key.encode()) for name, _, key in parts if name == self.cookie
        )


@dataclass(frozen=True)
class Refusal(Exception):
    """A request that is not answered. status: of HTTP"""

    status: int
    message: str
    fix: str = ""


class Access:
    """Refuse requests of other users, other hosts and other sites, and add the headers of security to every answer."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        self._app = app
        self._session = session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                added = _EVERYWHERE | ({} if b"cache-control" in own else {"cache-control": "no-store"})
                added |= {} if b"content-security-policy" in own else {"content-security-policy": policy()}
                message["headers"] = [*message["headers"], *((a.encode(), b.encode()) for a, b in added.items())]
            await send(message)

        try:
            headers = _headers(scope)
            self._check_origin(scope, headers)
            if scope["path"] == "/" and (token := _token(scope["query_string"])):
                await self._exchange(token, headers, send_with_headers)
                return
            if scope["path"].startswith("/api"):
                if not self._session.has_key(headers.get("cookie", "")):
                    fix = "open the address that the terminal shows; it is valid once"
                    raise Refusal(401, "this browser has not been admitted to the studio", fix)
                if scope["method"] == "POST":
                    receive = await _bounded(headers, receive)
            await self._app(scope, receive, send_with_headers)
        except Refusal as refusal:
            await _answer(send_with_headers, refusal)
        except Exception as error:
            _LOG.exception("%s", scope["path"])
            if started:
                raise
            found, fix = f"an error of the studio: {type(error).__name__}", "report it; the terminal shows the details"
            await _answer(send_with_headers, Refusal(500, found, fix))

    def _check_origin(self, scope: Scope, headers: dict[str, str]) -> None:
        """Raise Refusal for a request to another host, which may lead here by its DNS, or from another site."""
        method = scope["method"]
        own = {f"{host}:{self._session.port}" for host in ("127.0.0.1", "localhost")}
        host = headers.get("host", "")
        if host not in own:
            raise Refusal(421, "this server has another address", f"http://127.0.0.1:{self._session.port}")
        if method not in ("GET", "HEAD", "POST"):
            raise Refusal(405, f"the method {method[:20]} is not used here")
        # Another port of this host is the same site, but may belong to another user.
        if method == "POST" and headers.get("origin") != f"http://{host}":
            raise Refusal(403, "the request comes from another site")
        is_page = headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_page:
            raise Refusal(403, "the request comes from another site")

    async def _exchange(self, token: str, headers: dict[str, str], send: Send) -> None:
        """Answer a request with a token: with the cookie, and with an address without the token."""
        session = self._session
        location = [(b"location", b"/"), (b"content-length", b"0")]
        if session.use(token):
            cookie = f"{session.cookie}={session.key}; HttpOnly; SameSite=Strict; Path=/"
            location.append((b"set-cookie", cookie.encode()))
        elif not session.has_key(headers.get("cookie", "")):
            raise Refusal(403, "this address was used before", "the terminal shows the next one")
        await send({"type": "http.response.start", "status": 303, "headers": location})
        await send({"type": "http.response.body", "body": b""})


def policy(nonce: str = "") -> str:
    """Return the Content-Security-Policy. nonce: of style elements, which a code editor adds"""
    style = f" 'nonce-{nonce}'" if nonce else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'{style}; img-src 'self' data:; connect-src 'self';"
        " font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _token(query: bytes) -> str:
    try:
        return parse_qs(query.decode("latin-1"), max_num_fields=8).get("token", [""])[0]
    except ValueError:
        return ""


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers of a request. Raise Refusal if one that is checked occurs twice."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in ("host", "origin", "content-type", "content-length"):
            raise Refusal(400, f"the header {name} occurs twice")
        # A browser may split its cookies.
        found[name] = f"{found[name]}; {value.decode('latin-1')}" if name in found else value.decode("latin-1")
    return found


async def _bounded(headers: dict[str, str], receive: Receive) -> Receive:
    """Read the body, and return what passes it on. Raise Refusal if it is too large or not JSON."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body is not of type application/json")
    body, size, more = bytearray(), 0, True
    while more and size <= _MOST_READ:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        part = message.get("body", b"")
        size += len(part)
        body += part if size <= LARGEST_BODY else b""  # the rest is read, since a browser first sends all of it
        more = message.get("more_body", False)
    if size > LARGEST_BODY:
        raise Refusal(413, f"the request has more than {LARGEST_BODY >> 20} MB")
    waiting: Iterator[Message] = iter([{"type": "http.request", "body": bytes(body), "more_body": False}])

    async def receive_body() -> Message:
        return next(waiting, None) or await receive()

    return receive_body


async def _answer(send: Send, refusal: Refusal) -> None:
    body = json.dumps({"message": refusal.message, "fix": refusal.fix}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refusal.status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
