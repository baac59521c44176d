"""Virtual environments with the packages of a definition, made by uv, or by venv and pip."""

import configparser
import contextlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.images import cache
from allranks.images.cache import Report
from allranks.images.packages import Packages, place_of
from allranks.plan import digest

_MINORS = tuple(f"3.{minor}" for minor in range(14, 6, -1))
_OF_PIP = {"index-url": "UV_DEFAULT_INDEX", "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS"}
"""Settings of pip that uv does not read, with uv's variables for them."""
_OPTIONS = ("-i ", "-f ", "--index-url", "--extra-index-url", "--find-links", "--no-index", "--trusted-host")
"""Lines of a requirements file that name the location of packages."""


def version_of(packages: Packages) -> str:
    """Return the version of Python for the packages, such as 3.11: this Python's version if they allow it, else the
    newest one."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not packages.python:
        return own
    if exact := re.fullmatch(r"==(\d+\.\d+)\.\*", packages.python):
        return exact[1]
    from packaging.specifiers import SpecifierSet  # takes 0.03 s to import

    allowed = SpecifierSet(packages.python)
    return next((minor for minor in (own, *_MINORS) if any(allowed.contains(f"{minor}.{n}") for n in (99, 9, 0))), own)


def of_condas_pip(packages: Packages) -> list[str]:
    """Return lines for packages that conda installs with every Python below 3.13, because its package pip depends on
    them. Scripts use setuptools for pkg_resources, which version 82 removed."""
    minor = int(version_of(packages).partition(".")[2])
    return ["setuptools<82", "wheel"] if packages.with_conda and minor < 13 else []


def folder_of(packages: Packages, installer: str = "") -> Path:
    """Return the folder of the virtual environment with these packages, which may not exist.

    installer: the command for which it has pip; "": without pip

    Raise OSError if a file that the packages name cannot be read.
    """
    files = (digest.of_path(path) for path in packages.files)
    key = digest.of_text(
        *(version_of(packages), platform.system(), platform.machine()),
        *(*of_condas_pip(packages), *packages.requirements, "files", *files, installer),
    )
    return cache.root() / f"venv-{key[:24]}"


def make(packages: Packages, folder: Path, where: str, file: Path, report: Report, *, has_pip: bool = False) -> None:
    """Make the virtual environment with these packages.

    where:   the environment, for messages
    file:    the file with its definition
    has_pip: whether its programs can install packages with pip

    Raise InputError if it cannot be made.
    """
    version, uv = version_of(packages), uv_program()
    report(f"Python {version}")
    python = find_python(version, uv)
    command = [python or "", "-m", "venv", *["--without-pip"] * (not has_pip), str(folder)]
    if uv:
        command = [uv, "venv", "--quiet", *["--seed"] * has_pip, "--python", python or version, str(folder)]
    code, lines = 1, ["there is none on PATH or in pyenv, and no uv to install it"]
    if python or uv:
        code, lines = cache.run(command, report, _settings_of_pip())
    if code and python is None:
        found = f"Python {version} cannot be had: {''.join(lines[-1:]).strip()}"
        fix = f"install it (uv python install {version}), name another version, or: --environment host"
        raise InputError(Problem(f"{where} ({place_of(file, 'python')})", found, "", fix))
    if not code and (lines := of_condas_pip(packages)):
        # As conda does, before the other packages. Most scripts run without them, so a failure is ignored.
        options = [line for line in packages.requirements if line.startswith(_OPTIONS)]
        _install([*options, *lines], folder, uv, report)
    if not code and packages.requirements:
        code, lines = _install(packages.requirements, folder, uv, report)
    if code:
        raise cache.failed(where, file, packages, lines)
    # Let the calls of pip of several instances, which share the environment, wait for each other.
    own, lock = (shlex.quote(str(folder / "bin" / name)) for name in ("python", "pip"))
    for program in (*folder.glob("bin/pip"), *folder.glob("bin/pip3*")):
        program.write_text(f'#!/bin/sh\nexec flock {lock} {own} -m pip "$@"\n', encoding="utf-8")


def _install(lines: Sequence[str], folder: Path, uv: str | None, report: Report) -> tuple[int, list[str]]:
    """Install the lines of a requirements file. Return the exit code, and the last lines that were printed."""
    python, file = str(folder / "bin" / "python"), folder / "requirements.txt"
    if uv is None:
        installer = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install"]
    else:  # as pip, which takes the best version of all indexes
        installer = [uv, "pip", "install", "--python", python, "--index-strategy", "unsafe-best-match"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        return cache.run([*installer, "--requirement", str(file)], report, _settings_of_pip())
    finally:
        file.unlink()  # an index in it may have a password


def _settings_of_pip() -> dict[str, str]:
    """Return the package indexes in this user's configuration of pip, as variables of uv."""
    home = Path.home()
    files = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf", home / ".pip/pip.conf", home / ".config/pip/pip.conf")
    settings = configparser.RawConfigParser()
    with contextlib.suppress(configparser.Error, ValueError):
        settings.read([*files, Path(sys.prefix, "pip.conf"), os.environ.get("PIP_CONFIG_FILE", os.devnull)])
    found: dict[str, str] = {}
    for key, name in _OF_PIP.items():
        own = settings.get("install", key, fallback="") or settings.get("global", key, fallback="")
        if text := os.environ.get(f"PIP_{key.upper().replace('-', '_')}") or own:
            found[name] = " ".join(text.split())
    return found


def uv_program() -> str | None:
    """Return the path of uv: beside this Python, or on PATH."""
    own = Path(sys.executable).with_name("uv")
    return str(own) if os.access(own, os.X_OK) else shutil.which("uv")


def find_python(version: str, uv: str | None) -> str | None:
    """Return an installed interpreter of a version, such as 3.9; None if there is none."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return str(getattr(sys, "_base_executable", sys.executable))
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for path in (*sorted(versions.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")):
        # pyenv has shims even for versions that are not in use.
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(path)
    if uv is None:
        return None
    command: Sequence[str] = [uv, "python", "find", "--quiet", "--no-python-downloads", "--no-project", version]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None if found.returncode == 0 else None
