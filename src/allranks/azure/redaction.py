"""Takes secrets out of what a library or a service says."""

from __future__ import annotations

import re

MASK = "***"
"""Stands where a secret was."""

_SECRETS = (
    # A token after its scheme, and any JSON web token wherever it stands.
    re.compile(r"(?i)(\b(?:bearer|basic|sharedkey(?:lite)?)\s+)[\w+/=.:~-]{8,}"),
    re.compile(r"()\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?"),
    # The signature of a SAS, also where the address is escaped once more.
    re.compile(r"(?i)((?:[?&;\s\"']|%26|%3f|\b)sig(?:=|%3d))[^&\s\"'<>;,)}\]]+"),
    # A connection string's keys, and the names that keys and passwords have in JSON, in forms and in variables.
    re.compile(
        r"(?i)((?:account|access|shared_?access|primary|secondary|storage|api|subscription|container_?registry)_?key"
        r"[\"']?\s*[=:]\s*[\"']?)[^;&\s\"',}]+"
    ),
    re.compile(
        r"(?i)((?:shared_?access_?signature|sas_?(?:token|uri|url)|client_?secret|client_?assertion|password|passwd|pwd"
        r"|(?:access|refresh|id|user_?aml)_?token|credential_?secret|instrumentation_?key|secret)"
        r"[\"']?\s*[=:]\s*[\"']?)[^;&\s\"',}]+"
    ),
    # A user's password or personal token in an address.
    re.compile(r"(://)[^/\s@:\"']+(?::[^/\s@\"']*)?(?=@)"),
    # A storage account's key has 64 bytes and thus this shape; nothing else in a message has.
    re.compile(r"()(?<![\w+/])[A-Za-z0-9+/]{86}=="),
)


def redact(text: str) -> str:
    """The text with every bearer token, SAS signature, key, password and connection string's secret as ``***``."""
    for secret in _SECRETS:
        text = secret.sub(rf"\g<1>{MASK}", text)
    return text
