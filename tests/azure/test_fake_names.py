"""Names that Azure ML takes, and those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from fake import names
from fake.computes import Compute
from fake.name_rules import RULES, complaint, is_port
from fake.service import FakeAzure

LONGEST = {"computes": 24, "workspaces": 33, "registries": 33}
DOTTED = ("environments", "models")


@pytest.mark.parametrize("kind", RULES)
def test_every_kind_has_a_length_and_its_characters(kind: str) -> None:
    longest = LONGEST.get(kind, 255)
    assert complaint(kind, "a" * longest) == ""
    assert complaint(kind, "a2b") == ""
    for name in ("a" * (longest + 1), "", "a b", "a/b", "ä1", "-ab", "_ab", ".ab"):
        assert f"The name '{name}' of {kind} is invalid." in complaint(kind, name)
    assert bool(complaint(kind, "a.b")) is (kind not in DOTTED)
    assert bool(complaint(kind, "A-b")) is (kind == "components")
    assert bool(complaint(kind, "a_b")) is (kind == "computes")
    assert bool(complaint(kind, "1ab")) is (kind in ("components", "computes"))


@pytest.mark.parametrize(("kind", "name"), [("computes", "cluster-1"), ("computes", "ab"), ("models", "net.")])
def test_what_else_is_refused(kind: str, name: str) -> None:
    assert complaint(kind, name)


def test_the_names_of_the_fake_are_such() -> None:
    assert complaint("workspaces", names.WORKSPACE) == complaint("registries", names.REGISTRY) == ""
    with pytest.raises(ValueError, match="The name 'my_cluster' of computes is invalid"):
        Compute("my_cluster", "Standard_D4s_v5", 1)


@pytest.mark.parametrize(("name", "good"), [("a", True), ("a.b_1", True), ("1a", False), ("a-b", False), ("a.", False)])
def test_ports(name: str, good: bool) -> None:
    assert is_port(name) is good


def test_the_real_client_gets_the_refusal(azure: FakeAzure, tmp_path: Path) -> None:
    from azure.ai.ml import command
    from azure.ai.ml.entities import Data, Environment, Model

    (tmp_path / "x").write_text("x")
    image = Environment(image="ubuntu:24.04")
    client: Any = azure.client(show_progress=False)
    for create, kind in (
        (lambda: client.data.create_or_update(Data(name="a.b", version="1", path=str(tmp_path))), "data"),
        (lambda: client.models.create_or_update(Model(name="net.", version="1", path=str(tmp_path))), "models"),
        (
            lambda: client.jobs.create_or_update(
                command(name="a.b", command="true", environment=image, compute="cpu-cluster")
            ),
            "jobs",
        ),
    ):
        with pytest.raises(HttpResponseError, match=f"of {kind} is invalid"):
            create()
    assert not azure.data
    assert not azure.models
    assert not azure.jobs
