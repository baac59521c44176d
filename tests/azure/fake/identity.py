"""Sign-in: the endpoint of a managed identity, as App Service has it, and what is asked of every request."""

from __future__ import annotations

import base64
import json
import secrets
import time
from typing import TYPE_CHECKING

from allranks_client.messages import Answer, Refusal, Request
from fake.names import AUDIENCES, TENANT

if TYPE_CHECKING:
    from fake.service import FakeAzure

LIFETIME = 3600


def token(azure: FakeAzure, request: Request) -> Answer:
    """A token for ``?resource=``. Raises Refusal where the caller does not know the secret header, or where nobody may
    sign in."""
    resource = request.query.get("resource", "").rstrip("/")
    if request.headers.get("x-identity-header") != azure.identity_header:
        raise Refusal(401, "Unauthorized", "The secret header is missing or wrong.")
    if not azure.signs_in or not resource:
        raise Refusal(400, "invalid_request", "No managed identity is assigned.")
    expires = int(time.time()) + LIFETIME
    made = _jwt({"aud": resource, "tid": TENANT, "oid": "somebody", "exp": expires, "jti": secrets.token_hex(8)})
    azure.tokens[made] = resource
    azure.secrets.add(made)
    azure.sign_ins.append(resource)
    return Answer.of({"access_token": made, "expires_on": str(expires), "resource": resource, "token_type": "Bearer"})


def check(azure: FakeAzure, request: Request) -> None:
    """Raises Refusal where the request has no token that was handed out here."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    found = azure.tokens.get(given, "") if kind == "Bearer" else ""
    if found and found not in AUDIENCES[request.host]:
        raise Refusal(401, "InvalidAuthenticationTokenAudience", f"The audience {found} is not that of {request.host}.")
    if not found:
        header = {"WWW-Authenticate": f'Bearer authorization_uri="https://login.microsoftonline.com/{TENANT}"'}
        raise Refusal(401, "InvalidAuthenticationToken", "The access token is missing or invalid.", header)
    if not azure.allows:
        raise Refusal(
            403,
            "AuthorizationFailed",
            "The client 'somebody' does not have authorization to perform action "
            f"'Microsoft.MachineLearningServices/{request.method.lower()}' over scope '{request.path}' or the scope is "
            "invalid.",
        )


def _jwt(claims: dict[str, object]) -> str:
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, secrets.token_bytes(32)))
