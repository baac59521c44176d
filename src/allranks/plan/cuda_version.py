"""The CUDA version of a step's environment, as far as its name, its image or its Dockerfile states it."""

from __future__ import annotations

import re
from pathlib import Path

from allranks.hardware.cuda import RELEASES
from allranks.plan.environment import Environment

_ROW = re.compile(r"^ARG CUDA_VERSION=[\"']?(\d+(?:\.\d+)?)", re.MULTILINE)
_STATED = re.compile(r"cuda[:-]?(\d+)\.(\d+)|\bcu(\d\d)(\d)\b")
_IMAGE = re.compile(r"^(?:FROM\s+|ARG BASE_IMAGE=)(\S+)", re.MULTILINE)


def cuda_version(environment: Environment) -> str:
    """Return the version, such as "12.6"; "" if nothing states it or the environment has no CUDA.

    For a build context on this machine that is the row CUDA_VERSION of its Dockerfile, else the tag of an image that it
    builds from. For others it is in the image's or the environment's name: `acpt-pytorch-2.8-cuda12.6`.
    """
    if environment.folder:
        try:
            text = Path(environment.folder, environment.dockerfile or "Dockerfile").read_text(encoding="utf-8")
        except (OSError, ValueError):
            return ""
        row = _ROW.search(text)
        return row[1] if row else next(filter(None, map(_stated, _IMAGE.findall(text))), "")
    for release in RELEASES:
        if environment.version.endswith(f"-{release.name}"):
            return release.version
    return _stated(environment.image) or _stated(environment.name)


def _stated(text: str) -> str:
    match = _STATED.search(text.lower())
    return ".".join(filter(None, match.groups())) if match else ""
