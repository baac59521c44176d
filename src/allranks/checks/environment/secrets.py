"""Check that the files contain no secrets: everyone who can pull an image can read what it was built with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from allranks.environments.find import DOCKERFILE, EnvironmentFolder
from allranks.errors import Problem
from allranks.secrets import is_secret_name, secrets_in

_SETTING = re.compile(r"^\s*(?:ARG|ENV)\s+(?P<settings>\S.*)", re.IGNORECASE)
_PAIR = re.compile(r"(\w+)=[^\s$]")
_OLD_PAIR = re.compile(r"(\w+)\s+[^\s$]")
"""``ENV NAME value``, which Docker still accepts."""
_SEARCHED = (".in", ".sh", ".txt", ".yaml", ".yml")


def problems(environment: EnvironmentFolder, _root: Path) -> Iterator[Problem]:
    """Yield a problem for each secret in a line, and for each variable of the image that is named like a secret."""
    fix = "remove it, make a new one, and give it to the build as a secret mount or to the job as a variable"
    for path in sorted(environment.folder.iterdir()):
        if path.name != DOCKERFILE and path.suffix not in _SEARCHED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            names = _secret_names(line) if path.name == DOCKERFILE else []
            kinds = [f"a value for {name}" for name in names] or sorted(set(secrets_in(line).values()))
            for kind in kinds:
                yield Problem(f"{path}:{number}", kind, "nothing secret in an image", fix)


def _secret_names(line: str) -> list[str]:
    """Return the secret-like names that a line of a Dockerfile sets to a value."""
    setting = _SETTING.match(line)
    if setting is None:
        return []
    first = _OLD_PAIR.match(setting["settings"])
    names = [first[1]] if first else _PAIR.findall(setting["settings"])
    return [name for name in names if is_secret_name(name)]
