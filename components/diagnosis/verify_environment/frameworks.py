"""Probes of the Python packages and of their build options.

Each gets its value from expect.yaml, returns findings, and records versions in `facts`.
"""

import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from importlib.util import find_spec
from typing import Any

from probe_commands import Finding, run_python
from system import version


def packages(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check the version of each distribution."""
    findings = []
    for name, expected in wanted.items():
        try:
            found = installed(name)
        except PackageNotFoundError:
            findings.append(Finding(f"package {name}", str(expected), "not installed", False))
            continue
        facts[re.sub(r"[-_.]+", "-", name).lower()] = found.split("+")[0]
        findings.append(version(f"package {name}", str(expected), found))
    return findings


def modules(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    """Import each module, which proves that its shared libraries are found."""
    answers = {name: run_python(f"import {name}; answer = True") for name in wanted}
    return [
        Finding(f"import {name}", "works", "works" if answer is True else str(answer), answer is True)
        for name, answer in answers.items()
    ]


def torch(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check the backends of torch.distributed, and the CUDA and NCCL versions that torch was built with."""
    build = run_python(
        "import torch, torch.distributed as d\n"
        "nccl = '.'.join(map(str, torch.cuda.nccl.version())) if torch.version.cuda else ''\n"
        "built = {'gloo': d.is_gloo_available(), 'nccl': d.is_nccl_available(), 'mpi': d.is_mpi_available()}\n"
        "answer = {'cuda': torch.version.cuda or '', 'nccl': nccl, 'backends': built}"
    )
    if not isinstance(build, dict):
        return [Finding("torch", "imports", str(build), False)]
    facts.update({name: build[name] for name in ("cuda", "nccl") if build[name]})
    findings = [
        version(f"torch's {name}", str(wanted[name]), build[name] or "none")
        for name in ("cuda", "nccl")
        if name in wanted
    ]
    return findings + [
        _built(f"torch's backend {name}", bool(build["backends"].get(name))) for name in wanted.get("backends", [])
    ]


def tensorflow(wanted: dict[str, Any], facts: dict[str, str]) -> list[Finding]:
    """Check whether TensorFlow was built for GPUs, and in that case the packages with its NCCL and CUDA."""
    is_cuda = run_python("import tensorflow as t\nanswer = bool(t.sysconfig.get_build_info().get('is_cuda_build'))")
    findings = [Finding("tensorflow for GPUs", str(wanted["cuda"]), str(is_cuda), is_cuda is wanted["cuda"])]
    for name, package in (("nccl", "nvidia-nccl-cu12"), ("cuda", "nvidia-cuda-runtime-cu12")):
        if wanted["cuda"]:
            (finding,) = packages({package: wanted[f"{name}_version"]}, {})
            # A CUDA version has two numbers, that of its runtime three.
            facts[name] = ".".join(finding.found.split(".")[: 2 if name == "cuda" else 3])
            findings.append(finding)
    return findings


def deepspeed_ops(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    """Check which ops were compiled with the package. They need no compiler at run time."""
    ops = run_python("from deepspeed.git_version_info import installed_ops\nanswer = installed_ops")
    if not isinstance(ops, dict):
        return [Finding("deepspeed's ops", ", ".join(wanted), str(ops), False)]
    return [_built(f"deepspeed's op {name}", bool(ops.get(name))) for name in wanted]


def horovod(wanted: list[str], _facts: dict[str, str]) -> list[Finding]:
    """Check Horovod's build: mpi, gloo, nccl. Importing it proves that it was built with the environment's
    torch or TensorFlow."""
    framework = "torch" if find_spec("torch") else "tensorflow"
    questions = ", ".join(f"'{name}': bool(h.{name}_built())" for name in wanted)
    features = run_python(f"import horovod.{framework} as h\nanswer = {{{questions}}}")
    if not isinstance(features, dict):
        return [Finding(f"horovod with {framework}", ", ".join(wanted), str(features), False)]
    return [_built(f"horovod with {name}", bool(features.get(name))) for name in wanted]


def _built(what: str, is_built: bool) -> Finding:
    return Finding(what, "built", "built" if is_built else "not built", is_built)
