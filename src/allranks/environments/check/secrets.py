"""Nothing secret is in the files: an image keeps what it was built with, for everybody who can pull it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import DOCKERFILE, EnvironmentFolder
from allranks.errors import Problem

_NAMED = re.compile(
    r"^\s*(?:ARG|ENV)\b.*?\b(?P<name>\w*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY|ACCESS_KEY|ACCOUNT_KEY)\w*)(?:=|\s+)\S+",
    re.IGNORECASE,
)
_KINDS = (
    ("a password in an address", re.compile(r"://[^/\s:@$]+:[^/\s@$]+@")),
    ("a shared access signature", re.compile(r"[?&]sig=[A-Za-z0-9%+/=]{16,}")),
    ("a private key", re.compile(r"BEGIN [A-Z ]*PRIVATE KEY")),
    ("an account key", re.compile(r"AccountKey=[A-Za-z0-9+/=]{16,}")),
    ("a token of GitHub", re.compile(r"\bgh[pousr]_[A-Za-z0-9]{20,}")),
)
_SEARCHED = (".in", ".sh", ".txt", ".yaml", ".yml")


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    fix = "remove it, make a new one, and give it to the build as a secret mount or to the job as a variable"
    for path in sorted(environment.folder.iterdir()):
        if path.name != DOCKERFILE and path.suffix not in _SEARCHED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = [kind for kind, pattern in _KINDS if pattern.search(line)]
            named = _NAMED.match(line) if path.name == DOCKERFILE else None
            found += [f"a value for {named['name']}"] if named else []
            for kind in found:
                yield Problem(f"{path}:{number}", kind, "nothing secret in an image", fix)
