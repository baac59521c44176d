"""The unpacked root filesystem of an image. The path of its interpreter leads through it."""

import json
import os
from pathlib import Path

PREFIX, FOLDER, IMAGE = "container-", "rootfs", "image.json"
DRIVER = "/usr/local/nvidia"
"""The folder of this machine's GPU driver in a container."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH of an image that sets none."""


def of(interpreter: Path) -> Path | None:
    """Return the root filesystem that an interpreter belongs to; None for an interpreter of this machine."""
    folder, found, _ = str(interpreter).partition(f"/{FOLDER}/")
    return Path(folder, FOLDER) if found and os.path.basename(folder).startswith(PREFIX) else None


def variables(root: Path) -> dict[str, str]:
    """Return the environment variables of the image, and those that every image has."""
    try:
        entries = json.loads((root.parent / IMAGE).read_text(encoding="utf-8"))
    except FileNotFoundError:  # not made yet
        entries = []
    return {"PATH": PATH, "HOME": "/root"} | dict(entry.partition("=")[::2] for entry in entries)


def interpreter(root: Path) -> Path:
    """Return the path on this machine of the first `python`, else `python3`, on the image's PATH. It may not exist."""
    folders = variables(root)["PATH"].split(":")
    found = (root / folder.lstrip("/") / name for name in ("python", "python3") for folder in folders)
    return next((path for path in found if os.path.lexists(path)), root / "usr/bin/python3")


def shell(root: Path) -> str:
    """Return the shell of the image that runs commands."""
    return "/bin/bash" if os.path.lexists(root / "bin/bash") else "/bin/sh"
