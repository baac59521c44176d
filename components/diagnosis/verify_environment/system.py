"""Probes of the system: Python, Open MPI, UCX, OFED, libraries and commands.

Each gets its value from expect.yaml, returns findings, and records versions in `facts`.
"""

import ctypes
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from probe_commands import Finding, first_version, last_line, output, satisfies

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def python(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    facts["python"] = platform.python_version()
    return [version("python", str(wanted["version"]), facts["python"])]


def openmpi(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check `version`, `with` (required components), `enabled` (components that no setting excludes) and `from` (the
    folder that mpirun must be in)."""
    path = shutil.which("mpirun")
    if path is None:
        return [Finding("openmpi", str(wanted["version"]), "no mpirun on PATH", False)]
    code, text = output(path, "--version")
    facts["openmpi"] = first_version(text)
    findings = [version("openmpi", str(wanted["version"]), facts["openmpi"] or f"exit code {code}: {last_line(text)}")]
    if "from" in wanted:
        folder = str(wanted["from"])
        findings.append(Finding("openmpi's mpirun", f"in {folder}", path, path.startswith(f"{folder}/")))
    _, info = output("ompi_info")
    for component in wanted.get("with", []):
        frameworks = sorted(set(re.findall(rf"MCA (\w+): {component} ", info)))
        found = f"MCA {', '.join(frameworks)}" if frameworks else "no such component in ompi_info"
        findings.append(Finding(f"openmpi with {component}", "a component", found, bool(frameworks)))
    return findings + [_enabled(component, info) for component in wanted.get("enabled", [])]


def _enabled(component: str, info: str) -> Finding:
    """Check that no setting excludes a component of Open MPI. A list that begins with ^ excludes its components."""
    _, settings = output("ompi_info", "--all", "--parsable")
    frameworks = set(re.findall(rf"MCA (\w+): {component} ", info))
    excluding = [
        f"{framework} = {value}"
        for framework in sorted(frameworks)
        for value in re.findall(rf"^mca:{framework}:base:param:{framework}:value:(.+)$", settings, re.MULTILINE)
        if (component in value.lstrip("^").split(",")) == value.startswith("^")
    ]
    found = f"excluded: {'; '.join(excluding)}" if excluding else f"in {', '.join(sorted(frameworks)) or 'nothing'}"
    return Finding(f"openmpi with {component} enabled", "not excluded", found, bool(frameworks) and not excluding)


def ucx(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check `version`, and load the libraries of `transports`: one for InfiniBand needs the image's libibverbs."""
    try:
        library = ctypes.CDLL("libucp.so.0")
        library.ucp_get_version_string.restype = ctypes.c_char_p
        folder = _folder_of("libucp.so.0")
        facts["ucx"] = library.ucp_get_version_string().decode()
    except (OSError, AttributeError) as error:
        return [Finding("ucx", str(wanted["version"]), str(error), False)]
    findings = [version("ucx", str(wanted["version"]), facts["ucx"])]
    paths = {name: folder / "ucx" / f"libuct_{name}.so.0" for name in wanted.get("transports", [])}
    return findings + [_loaded(f"ucx transport {name}", str(path)) for name, path in paths.items()]


def _folder_of(library: str) -> Path:
    """Return the folder of a library that this process has loaded. Raise OSError if it has not."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(library):
            return path.parent
    raise OSError(f"{library} is not loaded")


def ofed(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check the versions of OFED's user space and of the DOCA that installed it."""
    _, info = output("ofed_info", "-n")
    facts["ofed"] = first_version(info)
    _, package = output("dpkg-query", "--show", "--showformat=${Version}", "doca-ofed-userspace")
    facts["doca"] = first_version(package)
    return [
        Finding("ofed", str(wanted["version"]), facts["ofed"] or last_line(info), facts["ofed"] == wanted["version"]),
        Finding("doca", str(wanted["doca"]), facts["doca"] or last_line(package), facts["doca"] == wanted["doca"]),
    ]


def libraries(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    return [_loaded(name, name) for name in wanted]


def commands(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    paths = {name: shutil.which(name, path=PATH) for name in wanted}
    return [
        Finding(f"command {name}", "on PATH", path or "not found", path is not None) for name, path in paths.items()
    ]


def files(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    """Check that each file exists and is not empty."""
    sizes = {name: Path(name).stat().st_size if Path(name).is_file() else None for name in wanted}
    return [
        Finding(f"file {name}", "not empty", "not found" if size is None else f"{size} bytes", bool(size))
        for name, size in sizes.items()
    ]


def version(what: str, wanted: str, found: str) -> Finding:
    return Finding(what, wanted, found, satisfies(found, wanted))


def _loaded(what: str, name: str) -> Finding:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return Finding(what, "loads", str(error), False)
    return Finding(what, "loads", "loads", True)
