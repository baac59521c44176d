"""What storage checks of a request: the signature of the account's key, or a SAS with its scope, rights and expiry.

Sources: "Authorize with Shared Key" and "Create a service SAS" of the REST reference of Azure Storage.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from urllib.parse import parse_qs, parse_qsl, quote

from allranks_client.messages import Request
from fake.names import ACCOUNT

_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)

NOT_PERMITTED = "This request is not authorized to perform this operation using this permission."


@dataclass(frozen=True)
class Grant:
    """A SAS that was handed out. container: "" for the whole account; blob: "" for the whole container"""

    container: str
    blob: str
    permissions: str
    expires: str


class Signatures:
    """The account's key, and every SAS.

    handed_out: where each SAS and key is noted
    lifetime:   seconds for which a SAS is good
    """

    def __init__(self, handed_out: set[str]) -> None:
        self.lifetime = 3600.0
        self._grants: dict[str, Grant] = {}
        self._handed_out = handed_out
        self.use(base64.b64encode(secrets.token_bytes(64)).decode())

    def use(self, key: str) -> None:
        """Makes a key that of the account."""
        self.key = key
        self._handed_out.add(key)

    def sas(self, container: str = "", blob: str = "", permissions: str = "r") -> str:
        """A new one for the account, a container or a blob."""
        from azure.storage.blob import generate_account_sas, generate_blob_sas, generate_container_sas

        end = datetime.now(timezone.utc) + timedelta(seconds=self.lifetime)
        expires = end.strftime("%Y-%m-%dT%H:%M:%SZ")
        by_key = {"account_key": self.key, "permission": permissions, "expiry": expires}
        if blob:
            made = generate_blob_sas(ACCOUNT, container, blob, **by_key)
        elif container:
            made = generate_container_sas(ACCOUNT, container, **by_key)
        else:
            made = generate_account_sas(ACCOUNT, resource_types="sco", **by_key)
        signature = parse_qs(made)["sig"][0]
        self._grants[signature] = Grant(container, blob, permissions, expires)
        self._handed_out |= {signature, quote(signature, safe="")}
        return made

    def refusal(self, request: Request, right: str) -> str | None:
        """Why a SAS is not good for a request that needs one of these rights: None where it is, "" where none is."""
        signature = request.query.get("sig", "").replace(" ", "+")
        if not signature:
            return ""
        grant = self._grants.get(signature) or self._own(request, signature)
        container, _, blob = request.path.lstrip("/").partition("/")
        if grant is None or (request.query.get("sp"), request.query.get("se")) != (grant.permissions, grant.expires):
            return "Signature did not match."
        if datetime.fromisoformat(grant.expires.replace("Z", "+00:00")).timestamp() < time.time():
            return "Signature not valid in the specified time frame."
        if grant.container not in ("", container) or grant.blob not in ("", blob):
            return "The SAS is not for this resource."
        return None if set(right) & set(grant.permissions) else NOT_PERMITTED

    def _own(self, request: Request, signature: str) -> Grant | None:
        """One for this blob that a client made with the key."""
        from azure.storage.blob import generate_blob_sas

        container, _, blob = request.path.lstrip("/").partition("/")
        permissions, expires = request.query.get("sp", ""), request.query.get("se", "")
        own = generate_blob_sas(ACCOUNT, container, blob, account_key=self.key, permission=permissions, expiry=expires)
        made = parse_qs(own)["sig"][0]
        self._handed_out |= {made, quote(made, safe="")}
        return Grant(container, blob, permissions, expires) if made == signature else None

    def signed(self, request: Request) -> bool:
        """Whether the request is signed with the account's key."""
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        return kind == "SharedKey" and given == f"{ACCOUNT}:{self._signature(request)}"

    def _signature(self, request: Request) -> str:
        headers = {**request.headers}
        if headers.get("content-length") == "0":
            headers["content-length"] = ""
        values = [headers.get(name, "") for name in _SIGNED]
        own = sorted((name, value) for name, value in headers.items() if name.startswith("x-ms-"))
        path, _, query = request.target.partition("?")
        resource = f"/{ACCOUNT}{path}" + "".join(
            f"\n{name.lower()}:{value}" for name, value in sorted(parse_qsl(query, keep_blank_values=True))
        )
        text = "\n".join([request.method, *values, *(f"{name}:{value}" for name, value in own), resource])
        made = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(made).decode()
