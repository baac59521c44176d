"""The last known state of a workspace or a registry, in the workspace folder, so that `--dry-run` works offline.

It is saved whenever a command has read the state or changed it. A file that is missing, damaged or of another version
is ignored: only the comparison of a dry run depends on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from allranks.azure.errors import SignInError, UnreachableError
from allranks.azure.workspace import WorkspaceOptions, with_placeholders
from allranks.history.workspace import Workspace, write_file

FOLDER = "azure"
_VERSION = 1


@dataclass
class LastState:
    """The known schedules, assets and clusters of one workspace or registry.

    where:     its full name, with placeholders for parts that are not given
    path:      the file
    schedules: by name, in the form of `azure.schedules`; None if they were never listed
    listed:    when they were listed, in seconds since the epoch
    assets:    by kind and name, in the form of `azure.register`
    clusters:  the sizes of its computes, in the form of `azure.changes`
    """

    where: str
    path: Path
    schedules: dict[str, dict[str, Any]] | None = None
    listed: float = 0.0
    assets: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, options: WorkspaceOptions, workspace: Workspace | None = None) -> LastState:
        """Return the state that was saved last of the workspace or registry that the options name; an empty one without
        a file. Raise InputError for an invalid name or file."""
        registry = options.registry_name
        where = f"registry {registry}" if registry else with_placeholders(options).arm_id
        folder = (workspace or Workspace.at()).root / FOLDER
        path = folder / f"{hashlib.sha256(where.encode()).hexdigest()[:12]}.json"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("version") == _VERSION and content.pop("where") == where:
                return cls(where, path, **content)
        return cls(where, path)

    def save(self) -> None:
        """Write the file. A command does not fail because the folder cannot be written."""
        content = {name: value for name, value in vars(self).items() if name != "path"}
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, json.dumps({"version": _VERSION, **content}, default=str), 0o600)


T = TypeVar("T")


def online_or_offline(
    online: Callable[[], T], offline: Callable[[], tuple[T, Iterable[float]]], what: str, *, only_offline: bool
) -> tuple[T, str]:
    """Return the result of `online`; if Azure cannot be reached or no user is signed in, that of `offline`, and the
    sentence on what it was compared with.

    offline:      returns also when each answer was known, in seconds since the epoch
    what:         what is compared, such as "schedules"
    only_offline: whether not to contact Azure at all
    """
    reason = ""
    if not only_offline:
        try:
            return online(), ""
        except UnreachableError as error:
            reason = f"{error.problem.found}; "
        except SignInError as error:
            reason = f"{error.problems[0].found}; "
    found, times = offline()
    known = [moment for moment in times if moment]
    if not known:
        return (
            found,
            f"{reason}no {what} of this workspace are known; Azure was not contacted, and everything would be new",
        )
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(min(known)))
    return found, f"{reason}compared with the state of {day}; Azure was not contacted"
