"""The variables in NCCL's configuration files on this machine. Environment variables take precedence over them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SYSTEM = Path("/etc/nccl.conf")


def read(environ: Mapping[str, str], system: Path = SYSTEM) -> dict[str, str]:
    """Return the variables that the user's file and the system's set. The user's take precedence, as in NCCL.

    The user's is NCCL_CONF_FILE, else ~/.nccl.conf (NCCL's user guide, "Environment Variables"). A file that does not
    exist or cannot be read sets nothing.
    """
    user_file = environ.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if (home := environ.get("HOME")) else "")
    return _variables(system) | (_variables(Path(user_file)) if user_file else {})


def _variables(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}
