"""Who may use the server: the browser of the person who started it, on this machine, from this server's own pages.

Everything below /api needs the cookie, which is exchanged for a token that is valid once. What is outside of /api is
the same for everybody: the files of the front end.
"""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from allranks_studio.server.answers import Refusal, answer_of


def policy(nonce: str = "") -> str:
    """Return the Content-Security-Policy. nonce: of style elements, which a code editor adds"""
    style = f" 'nonce-{nonce}'" if nonce else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'{style}; img-src 'self' data:; connect-src 'self';"
        " font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": policy(),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Headers of every answer that does not set them itself."""


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

    def admits(self, request: Request) -> bool:
        """Return whether a request has this session's cookie."""
        return hmac.compare_digest(request.cookies.get(self.cookie, "").encode(), self.key.encode())


class Access(BaseHTTPMiddleware):
    """Refuse requests of other users, other hosts and other sites, and add the headers of security to every answer."""

    def __init__(self, app: ASGIApp, session: Session) -> None:
        super().__init__(app)
        self._session = session

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        try:
            answer = self._admit(request) or await call_next(request)
        except Refusal as error:
            answer = answer_of(error)
        for name, value in _HEADERS.items():
            answer.headers.setdefault(name, value)
        return answer

    def _admit(self, request: Request) -> Response | None:
        """Return the answer to a request with a token; None for others. Raise Refusal."""
        session, path = self._session, request.scope["path"]
        self._check_origin(request, is_page=not path.startswith("/api"))
        if path == "/" and (token := request.query_params.get("token")):
            return self._exchange(request, token)
        if path.startswith("/api") and not session.admits(request):
            fix = "open the address that the terminal shows; it is valid once"
            raise Refusal(401, "this browser has not been admitted to the studio", fix)
        return None

    def _check_origin(self, request: Request, *, is_page: bool) -> None:
        """Raise Refusal for a request to another host, which may lead here by its DNS, or from another site."""
        headers = request.headers
        host = headers.get("host", "")
        if host not in {f"{name}:{self._session.port}" for name in ("127.0.0.1", "localhost")}:
            raise Refusal(421, "this server has another address", f"http://127.0.0.1:{self._session.port}")
        is_link = is_page and headers.get("sec-fetch-mode") == "navigate"
        is_own = is_link or headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        # Another port of this host is the same site, but may belong to another user.
        if not is_own or (request.method == "POST" and headers.get("origin") != f"http://{host}"):
            raise Refusal(403, "the request comes from another site")

    def _exchange(self, request: Request, token: str) -> RedirectResponse:
        """Return the cookie for a token, and an address without the token. Raise Refusal if it was used before."""
        session, answer = self._session, RedirectResponse("/", 303)
        if session.use(token):
            answer.set_cookie(session.cookie, session.key, httponly=True, samesite="strict")
        elif not session.admits(request):
            raise Refusal(403, "this address was used before", "the terminal shows the next one")
        return answer
