"""No component loses an input, an output or a value: pipelines and jobs in workspaces name them."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from allranks.catalog.find import find_specs

COMPONENTS = Path(__file__).parents[2] / "components"
SPECS = [spec for spec in find_specs(COMPONENTS) if spec.suffix == ".yaml"]


@pytest.mark.parametrize("spec", SPECS, ids=[spec.parent.name for spec in SPECS])
def test_each_port_is_the_value_of_one_option(spec: Path) -> None:
    """As `allranks.runtime.arguments` needs it."""
    document = yaml.safe_load(spec.read_text(encoding="utf-8"))
    program = r"(?:--[\w-]+|verify\.py)"  # of verify_environment: not one of ours
    option = re.compile(rf"(?:^|\s|\[\[){program}[ =](['\"]?)\$\{{\{{(inputs|outputs)\.(\w+)\}}\}}\1(?=\s|]]|$)")
    uses = Counter((kind, name) for _, kind, name in option.findall(document["command"]))
    assert uses == {(kind, name): 1 for kind in ("inputs", "outputs") for name in document.get(kind) or ()}
    assert len(uses) == document["command"].count("${{")
