"""openmpi-ofed and an environment on it, built for CPUs on a Debian made here, proved inside; and what is not true is
found: `make test-images`."""

import json
from pathlib import Path
from typing import Any

import pytest
from local_images import Images


def verified(images: Images, image: str, environment: str, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of `allranks environments verify`, and its findings by what they are about."""
    done = images.allranks("verify", image, "--environment", environment, "--engine", "buildah", "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, {finding["what"]: finding for finding in json.loads(done.stdout)}


def wrong(findings: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {what: finding["found"] for what, finding in findings.items() if finding["ok"] is False}


def test_the_base_is_what_it_says(images: Images, base: str) -> None:
    code, findings = verified(images, base, "openmpi-ofed")
    assert (code, wrong(findings)) == (0, {})
    assert findings["openmpi's mpirun"]["found"] == "/usr/bin/mpirun"
    for what in ("openmpi with ucx enabled", "ucx transport ib", "libibverbs.so.1"):
        assert findings[what]["ok"] is True, findings[what]
    assert findings["2 ranks under mpirun, all-reduce by mpi4py"]["found"] == "right"
    assert findings["tag ofed"]["ok"] is None


def test_pytorch_on_it_is_what_it_says(images: Images, pytorch: str) -> None:
    code, findings = verified(images, pytorch, "pytorch")
    assert (code, wrong(findings)) == (0, {})
    for kind in ("mpi4py", "torch"):
        assert findings[f"2 ranks under mpirun, all-reduce by {kind}"]["found"] == "right"
    assert findings["torch's backend gloo"]["ok"] is True


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_wrong_tag(images: Images, pytorch: str, environments: Path) -> None:
    change(environments / "pytorch/environment.yaml", 'mpi4py: "4.1.2"', 'mpi4py: "4.1.0"')
    code, findings = verified(images, pytorch, "pytorch", "--folder", str(environments))
    assert (code, wrong(findings)) == (1, {"tag mpi4py": "4.1.0"})


def test_a_wrong_version(images: Images, base: str, environments: Path) -> None:
    change(environments / "openmpi-ofed/expect.yaml", 'mpi4py: "4.1.2"', 'mpi4py: "4.0.0"')
    code, findings = verified(images, base, "openmpi-ofed", "--folder", str(environments))
    assert (code, wrong(findings)) == (1, {"package mpi4py": "4.1.2"})


def test_a_missing_library(images: Images, base: str) -> None:
    image = images.derive("localhost/without-verbs", base, "RUN rm /usr/lib/*/libibverbs.so.1*")
    code, findings = verified(images, image, "openmpi-ofed")
    assert code == 1
    assert {"libibverbs.so.1", "librdmacm.so.1", "ucx transport ib"} <= wrong(findings).keys()
    assert "cannot open shared object file" in findings["libibverbs.so.1"]["found"]


def test_an_image_that_is_not_there(images: Images) -> None:
    done = images.allranks("verify", "localhost/allranks-nowhere", "--environment", "cpu", "--engine", "buildah")
    assert done.returncode == 2
    assert "localhost/allranks-nowhere" in done.stderr


@pytest.mark.parametrize("name", ["openmpi-ofed", "pytorch"])
def test_nothing_of_this_machine_is_left_in_it(images: Images, base: str, pytorch: str, name: str) -> None:
    """Neither where this machine's registries are, nor a host key."""
    image = {"openmpi-ofed": base, "pytorch": pytorch}[name]
    command = "! ls /etc/ssh/ssh_host_* 2>/dev/null && ! grep -rs . /etc/pip.conf /etc/pip-certificates.pem"
    images.derive(f"localhost/{name}-is-clean", image, f"RUN {command}")
