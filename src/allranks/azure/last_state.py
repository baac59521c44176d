"""The last known state of a workspace or a registry, in the workspace folder, so that `--dry-run` works offline.

It is saved whenever a command has read the state or changed it. A file that is missing, damaged or of another version
is no known state: nothing but the comparison of a dry run depends on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.runs.workspace import Workspace, private_file

FOLDER = "azure"
_VERSION = 1


@dataclass
class LastState:
    """What is known of one workspace or registry.

    where:     its full name
    path:      the file
    schedules: by name, in the form of `azure.schedules`; None if they were never listed
    listed:    when they were listed, in seconds since the epoch
    assets:    by kind and name, in the form of `azure.registered`
    clusters:  the sizes of its computes, in the form of `azure.size_variable`
    """

    where: str
    path: Path
    schedules: dict[str, dict[str, Any]] | None = None
    listed: float = 0.0
    assets: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str, workspace: Workspace | None = None) -> LastState:
        """Return the state that was saved last, empty if there is none. where: the full name"""
        folder = (workspace or Workspace.at()).root / FOLDER
        state = cls(where, folder / f"{hashlib.sha256(where.encode()).hexdigest()[:12]}.json")
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            content = json.loads(state.path.read_text(encoding="utf-8"))
            if content["version"] == _VERSION and content["where"] == where:
                schedules, assets = content["schedules"], dict(content["assets"])
                state.listed, state.assets = float(content["listed"]), assets
                state.clusters = dict(content.get("clusters", {}))
                state.schedules = None if schedules is None else dict(schedules)
        return state

    def save_schedules(self, schedules: Mapping[str, dict[str, Any]]) -> None:
        """Save all schedules."""
        self.schedules, self.listed = dict(schedules), time.time()
        self.save()

    def save(self) -> None:
        """Write the file. A command does not fail because the folder cannot be written."""
        content = {
            "version": _VERSION,
            "where": self.where,
            "listed": self.listed,
            "schedules": self.schedules,
            "assets": self.assets,
            "clusters": self.clusters,
        }
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                private_file(temporary)
                temporary.write_text(json.dumps(content, default=str), encoding="utf-8")
                temporary.replace(self.path)
            finally:
                temporary.unlink(missing_ok=True)
