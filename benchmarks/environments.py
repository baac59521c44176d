"""Environments made for steps: what a run with one that exists costs, and what making one costs.

a run in a virtual environment that exists, later than on the host
    Wall time of `allranks run job.yml --force-rerun` with --environment venv, less that with --environment host.
    Medians of 9 in turn, in a workspace that has had a run.

making a virtual environment of 30 packages
    Wall time of everything that the first run adds: the definition is read, uv makes the environment and installs the
    packages from its cache. Medians of 5. Peer: `uv pip install` of the same packages alone, in an empty virtual
    environment that exists already.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, finish
from bench.timing import medians, run, seconds

from allranks.images.realise import realise
from allranks.images.venv import uv_program
from allranks.plan.environment import Environment

BIN = Path(sys.executable).parent
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
LATER, RATIO = 50.0, 1.2
"""Goals: milliseconds, and ours over the peer's."""

_NAMES = """
anyio attrs blinker cachetools certifi charset-normalizer click colorama decorator docutils executing filelock idna
iniconfig itsdangerous jinja2 joblib markupsafe mdurl networkx packaging pluggy pygments python-dateutil pytz requests
six tabulate tomli urllib3
"""
PACKAGES = _NAMES.split()

JOB = """\
type: command
command: python -c 'print(1)'
environment: {image: "python:OWN", conda_file: conda.yml}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="allranks-environments-") as folder:
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        figures = [*_start(Path(folder)), *_making(Path(folder))]
    finish("Environments made for steps", figures)


def _start(folder: Path) -> Iterator[Figure]:
    (folder / "job.yml").write_text(JOB.replace("OWN", OWN), encoding="utf-8")
    (folder / "conda.yml").write_text(json.dumps({"dependencies": [f"python={OWN}", {"pip": ["six"]}]}))
    command = [str(BIN / "allranks"), "run", f"{folder}/job.yml", "--folder", f"{folder}/workspace", "--force-rerun"]
    venv, host = medians(
        9,
        lambda: seconds([*command, "--environment", "venv"], UV_CACHE_DIR=_uv_cache()),
        lambda: seconds([*command, "--environment", "host"]),
    )
    yield Figure(
        "a run in a virtual environment that exists, ms later than on the host", (venv - host) * 1000, goal=LATER
    )


def _making(folder: Path) -> Iterator[Figure]:
    uv = _uv()
    os.environ["UV_CACHE_DIR"] = _uv_cache()
    numbers = itertools.count()
    lines = folder / "requirements.txt"
    lines.write_text("\n".join(PACKAGES), encoding="utf-8")

    def ours() -> float:
        file = folder / f"conda-{next(numbers)}.yml"
        # Another environment each time, with the same packages.
        definition = {"dependencies": [f"python={OWN}", {"pip": [*PACKAGES, f"six!={next(numbers)}.0"]}]}
        file.write_text(json.dumps(definition), encoding="utf-8")
        started = time.perf_counter()
        realise(Environment("bench", definition=json.dumps(definition), file=str(file)), "venv", lambda *_: None)
        return time.perf_counter() - started

    def peer() -> float:
        own = folder / f"peer-{next(numbers)}"
        run([uv, "venv", "--quiet", "--python", sys.executable, str(own)])
        command = [uv, "pip", "install", "--quiet", "--python", f"{own}/bin/python", "--requirement", str(lines)]
        started = time.perf_counter()
        subprocess.run(command, check=True)
        return time.perf_counter() - started

    made, installed = medians(5, ours, peer)
    name = f"making a virtual environment of {len(PACKAGES)} packages, s (peer: uv pip install alone)"
    yield Figure(name, made, installed, RATIO, of="ratio")


def _uv() -> str:
    return uv_program() or sys.exit('uv is missing: pip install "allranks[environments]"')


def _uv_cache() -> str:
    return run([_uv(), "cache", "dir"], XDG_CACHE_HOME=str(Path.home() / ".cache")).strip()


if __name__ == "__main__":
    main()
