"""Images of definitions, built by buildah, podman or Docker and unpacked for the instances of a rack."""

import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.images import build, cache, conda, rootfs
from allranks.images.cache import Report
from allranks.images.packages import Packages, place_of
from allranks.plan import digest
from allranks.plan.environment import Environment
from allranks.sdk.uploads import DOCKERFILE, context_of

_WITH_PACKAGES = """\
FROM {image}
USER root
COPY . /azureml-environment-setup
RUN cd /azureml-environment-setup && prefix=/azureml-envs/allranks && \\
    if command -v conda; then conda env create --quiet --prefix $prefix --file conda.yaml; \\
    elif command -v micromamba; then micromamba create --yes --prefix $prefix --file conda.yaml; \\
    elif ! python3 -c 'import re, sys; sys.exit(not re.match("{python}", sys.version))'; then \\
      echo "the image has no conda, and its Python is not {python}"; exit 1; \\
    elif test -n '{conda}'; then echo "the image has no conda, which installs {conda}"; exit 1; \\
    else python3 -m venv $prefix && $prefix/bin/python -m pip install --requirement requirements.txt; fi
ENV PATH=/azureml-envs/allranks/bin:$PATH
"""
"""The Dockerfile of an image with the packages of a conda file in a separate environment, as Azure ML builds it."""

_STEP = re.compile(r"(?:\[\d+/\d+\] )?(?:STEP |Step |#\d+ \[(?:[\w-]+ )?)\d+/\d+[\]: ]+(?P<instruction>.*)")
"""A line in which buildah, podman or Docker names the instruction of a Dockerfile that it executes."""


def is_defined(environment: Environment) -> bool:
    """Return whether a definition names an image or a build context."""
    return bool(environment.image or environment.folder)


def is_possible() -> bool:
    """Return whether this machine has a program that builds images."""
    try:
        return bool(build.engine())
    except InputError:
        return False


def folder_of(environment: Environment) -> Path:
    """Return the folder of the image, which may not exist. Raise InputError or OSError if a file of the build context
    cannot be read."""
    parts = [environment.image, environment.definition, environment.dockerfile, platform.machine(), _device()]
    context = digest.of_files(context_of(Path(environment.folder)).files) if environment.folder else ""
    return cache.root() / f"{rootfs.PREFIX}{digest.of_text(*parts, context)[:24]}"


def make(environment: Environment, packages: Packages, folder: Path, where: str, file: Path, report: Report) -> None:
    """Build the image of an environment, and unpack it.

    packages: of the conda file, if there is one
    where:    the environment, for messages
    file:     the file with its definition

    Raise InputError if that fails, or if no program builds images.
    """
    engine, tag, root = build.engine(), f"localhost/allranks/{folder.name}", folder / rootfs.FOLDER
    root.mkdir(parents=True)
    archive = folder / "rootfs.tar"
    report(f"an image by {engine.name}")
    has_output = engine.name != "docker"
    with tempfile.TemporaryDirectory(prefix="allranks-") as temporary:
        context = Path(temporary)
        dockerfile, options = _write_context(environment, packages, context)
        options += ["--output", f"type=tar,dest={archive}"] if has_output else []
        code, lines = cache.run(build.build_command(engine, context, dockerfile, tag, options), report)
    if code:
        own = Path(environment.folder, environment.dockerfile or DOCKERFILE) if environment.folder else file
        raise _failed(where, own, lines)
    if not has_output:
        container = _output([str(engine), "create", tag, "sh"], where).strip()
        _output([str(engine), "export", "--output", str(archive), container], where)
        _output([str(engine), "rm", container], where)
    (folder / rootfs.IMAGE).write_text(json.dumps(_variables(engine, tag, where)), encoding="utf-8")
    report("unpacking the image")
    # Only root can make devices, and an instance uses those of this machine. An ordinary user is root in an instance.
    tar = ["tar", "--extract", "--file", str(archive), "--directory", str(root), "--anchored", "--exclude=dev/*"]
    _output([*tar, "--exclude=./dev/*", *([] if os.geteuid() == 0 else ["--no-same-owner"])], where)
    archive.unlink()


def _device() -> str:
    return "cuda" if shutil.which("nvidia-smi") else "cpu"


def _write_context(environment: Environment, packages: Packages, folder: Path) -> tuple[str, list[str]]:
    """Write the build context of an environment into an empty folder. Return the path of the Dockerfile in it, and
    options of the build."""
    if environment.folder:
        dockerfile = environment.dockerfile or DOCKERFILE
        on_cpu = build.ON_CPU if _device() == "cpu" else {}
        return dockerfile, build.copy_context(Path(environment.folder), folder, dockerfile, on_cpu)
    text = f"FROM {environment.image}\n"
    if environment.definition:
        (folder / "conda.yaml").write_text(conda.specification(environment.definition, packages), encoding="utf-8")
        (folder / "requirements.txt").write_text("\n".join(packages.requirements) + "\n", encoding="utf-8")
        python = packages.python[2:-1] if packages.python.startswith("==") else "3."
        names = " ".join(re.sub(r"[^\w.=-]", "", name) for name in packages.conda_packages)
        text = _WITH_PACKAGES.format(image=environment.image, python=python, conda=names)
    (folder / DOCKERFILE).write_text(text, encoding="utf-8")
    return DOCKERFILE, []


def _variables(engine: Path, tag: str, where: str) -> list[str]:
    """Return the environment variables of an image, as NAME=VALUE."""
    verb = ["inspect", "--type", "image"] if engine.name == "buildah" else ["image", "inspect"]
    found = json.loads(_output([str(engine), *verb, tag], where))
    config = found["OCIv1"]["config"] if engine.name == "buildah" else found[0]["Config"]
    return config.get("Env") or []


def _output(command: Sequence[str], where: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        found = f"{' '.join(command[:2])} failed: {done.stderr.strip()[-400:]}"
        raise InputError(Problem(where, found, "", "free some space, or: --environment venv"))
    return done.stdout


def _failed(where: str, file: Path, lines: Sequence[str]) -> InputError:
    """Return the error of a failed build, with its last lines, and the line of the instruction that failed."""
    steps = [match["instruction"] for line in lines if (match := _STEP.match(line))]
    place = place_of(file, " ".join(steps[-1].split()[:3]) if steps else "FROM")
    text = "\n".join(f"    {line}" for line in lines[-cache.SHOWN_LINES :])
    found, fix = f"its image cannot be built:\n{text}", "correct it, or: --environment venv"
    return InputError(Problem(f"{where} ({place})", found, "", fix))
