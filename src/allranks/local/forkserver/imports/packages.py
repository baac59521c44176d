"""How to install the package that a module belongs to."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from allranks.local import stacks
from allranks.sdk.paths import shown

PACKAGES = {
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "jwt": "pyjwt",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages by the module that a script imports, where the names differ."""

_REQUIREMENT = re.compile(r"(?P<package>[\w.-]+).*;\s*extra\s*==\s*['\"](?P<extra>[\w-]+)['\"]")
_ALL = "dev"
"""The extra that contains the others."""


def install(module: str, interpreter: Path) -> str:
    """Return the command that installs a module for an interpreter."""
    package = PACKAGES.get(module, module)
    if interpreter != Path(sys.executable):
        return f"{shown(str(interpreter))} -m pip install {package}"
    stack = stacks.BY_MODULE.get(module)
    if stack is not None and not stack.environment:
        return stack.install
    extras = _extras().get(package, ())
    return f'pip install "allranks[{extras[0]}]"' if len(extras) == 1 else f"pip install {package}"


def is_known(module: str) -> bool:
    """Return whether a module is certainly that of a package: no code folder has one of that name."""
    return module in stacks.BY_MODULE or module in PACKAGES or module in _extras()


@cache
def _extras() -> dict[str, list[str]]:
    """Return the extras of allranks that bring a package, by package."""
    try:
        lines = requires("allranks") or []
    except PackageNotFoundError:  # not installed, but on PYTHONPATH
        return {}
    extras: dict[str, list[str]] = {}
    for line in lines:
        match = _REQUIREMENT.match(line)
        if match and match["extra"] != _ALL and match["package"] != "allranks":
            extras.setdefault(match["package"], []).append(match["extra"])
    return extras
