"""What Azure ML's own tools make of our components loads, validates, and passes the same check."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from allranks.catalog.find import find_specs
from allranks.checks import Findings
from allranks.checks.component import check
from allranks.sdk.session import session

PROJECT = Path(__file__).parents[3] / "components"
FUNCTIONS = [spec for spec in find_specs(PROJECT) if spec.suffix == ".py"]


def test_the_yaml_of_every_component_loads_and_validates() -> None:
    with session():
        from azure.ai.ml import load_component

        specs = [spec for spec in find_specs(PROJECT) if spec.suffix == ".yaml"]
        assert len(specs) > 20
        for spec in specs:
            assert load_component(spec)._validate().passed, spec


@pytest.mark.parametrize("spec", FUNCTIONS, ids=lambda spec: spec.parent.name)
def test_what_mldesigner_compiles_loads_validates_and_is_right(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session():
        from azure.ai.ml import load_component
        from mldesigner import compile

        # It imports a file by its bare name, and compiles what all modules of that name have left behind.
        monkeypatch.delitem(sys.modules, "component", raising=False)
        monkeypatch.setattr(sys, "path", list(sys.path))
        compile(source=str(spec), output=str(tmp_path), name=f"allranks_{spec.parent.name}")
        sys.modules.pop("component", None)
        (compiled,) = tmp_path.rglob("*.yaml")
        component = load_component(compiled)
        assert component._validate().passed
        assert component.name == f"allranks_{spec.parent.name}"
    assert check([compiled]) == Findings()
