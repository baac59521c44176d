"""Record the environment of this process in one file per rank."""

import contextlib
import json
import os
import platform
import pwd
import re
import resource
import socket
import stat
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from allranks.runtime import arguments

HIDDEN = "***"

_SECRET = re.compile(
    r"token|secret|passw|credential|connection_?string|signature|key|(?:^|_)(?:sas|sig)(?:_|$)", re.IGNORECASE
)
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK")
_PACKAGES = ("torch", "tensorflow", "ray", "mpi4py", "horovod", "deepspeed", "mlflow", "azureml-mlflow", "numpy")
_LIMITS = ("RLIMIT_MEMLOCK", "RLIMIT_NOFILE", "RLIMIT_STACK", "RLIMIT_CORE")
_MASTERS = ("MASTER_ADDR", "AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE")


def main() -> None:
    given = variables(os.environ)
    args = arguments()
    record = {
        "rank": rank(os.environ),
        "arguments": sys.argv,
        "variables": given,
        "paths": {
            "working directory": path_facts(os.getcwd()),
            "input folder": path_facts(str(args.folder)),
            "output records": path_facts(str(args.records)),
            "/tmp": path_facts("/tmp"),
            "/dev/shm": path_facts("/dev/shm") | {"bytes": size_of("/dev/shm")},
        },
        "user": user(),
        "limits": {name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS},
        "instance": instance(os.environ),
        "process": {
            "python": platform.python_version(),
            "umask": current_umask(),
            "standard input": stream_kind(0),
            "session leader": os.getsid(0) == os.getpid(),
        },
        "packages": packages(),
    }
    # A file of its own for each process, also of two that have the same rank by mistake.
    path = args.records / f"rank-{record['rank']}.{socket.gethostname()}.{os.getpid()}.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True), encoding="utf-8")
    print(f"wrote {path.name}: {len(given)} variables")


def rank(environ: Mapping[str, str]) -> int:
    """Return the rank under the distributions pytorch and mpi, the worker's index under tensorflow, otherwise the
    instance's number."""
    for name in _RANKS:
        if name in environ:
            return int(environ[name])
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return int(json.loads(environ["TF_CONFIG"])["task"]["index"])
    return int(environ.get("AZUREML_CR_NODE_RANK", "0"))


def packages() -> dict[str, str]:
    """Return the versions of installed packages that affect a launch."""
    found = {}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return all variables, with HIDDEN for the value if the name suggests a secret."""
    return {name: HIDDEN if _SECRET.search(name) else value for name, value in environ.items()}


def path_facts(path: str) -> dict[str, Any]:
    """Return the kind of a path, whether it is writable, and how its file system is mounted."""
    kind = "folder" if os.path.isdir(path) else "file" if os.path.exists(path) else "missing"
    mounted, system, options = mount_of(os.path.realpath(path))
    return {
        "path": path,
        "kind": kind,
        "writable": os.access(path, os.W_OK),
        "symbolic link": os.path.islink(path),
        "file system": system,
        "mounted at": mounted,
        "mounted read-only": "ro" in options.split(","),
    }


def mount_of(path: str) -> tuple[str, str, str]:
    """Return where the file system of a path is mounted, its type and its options: proc(5), /proc/self/mountinfo."""
    best = ("", "", "")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            place, options = fields.split()[4:6]
            place = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place)
            inside = place == "/" or path == place or path.startswith(f"{place}/")
            if inside and len(place) >= len(best[0]):
                best = (place, rest.split()[0], options)
    return best


def size_of(path: str) -> int:
    try:
        space = os.statvfs(path)
    except OSError:
        return 0
    return space.f_blocks * space.f_frsize


def user() -> dict[str, Any]:
    try:
        entry = pwd.getpwuid(os.getuid())
        name, home, shell = entry.pw_name, entry.pw_dir, entry.pw_shell
    except KeyError:  # a user of the container's host that the image does not know
        name = home = shell = ""
    return {
        "uid": os.getuid(),
        "gid": os.getgid(),
        "name": name,
        "home of the user": home,
        "home exists": os.path.isdir(os.path.expanduser("~")),
        "shell": shell,
    }


def instance(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the names and addresses of this instance and of the master."""
    hostname = socket.gethostname()
    masters = {name: environ[name].partition(":")[0] for name in _MASTERS if environ.get(name)}
    return {
        "hostname": hostname,
        "address": address_of(hostname),
        "masters resolve": {name: bool(address_of(master)) for name, master in masters.items()},
        "processors": len(os.sched_getaffinity(0)),
    }


def address_of(name: str) -> str:
    try:
        return socket.gethostbyname(name)
    except OSError:
        return ""


def current_umask() -> str:
    mask = os.umask(0)
    os.umask(mask)
    return f"{mask:03o}"


def stream_kind(descriptor: int) -> str:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return "closed"
    if stat.S_ISCHR(mode):
        return "terminal" if os.isatty(descriptor) else "device"
    return "pipe" if stat.S_ISFIFO(mode) else "file" if stat.S_ISREG(mode) else "socket"


if __name__ == "__main__":
    main()
