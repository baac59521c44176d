"""No component loses an input, an output or a value: pipelines and jobs in workspaces name them."""

from __future__ import annotations

import json
from pathlib import Path

from allranks.components.find import Port, find_components

EXPECTED = json.loads(Path(__file__).with_name("ports.json").read_text(encoding="utf-8"))
"""The ports of each component: type, default, range and enum of an input, type of an output."""


def described(port: Port) -> str:
    words = [port.type, *(["optional"] if port.optional else [])]
    words += [f"default {port.default!r}"] if port.default is not None else []
    words += [f"min {port.minimum:g}"] if port.minimum is not None else []
    words += [f"max {port.maximum:g}"] if port.maximum is not None else []
    return ", ".join((*words, *port.enum))


def test_every_port_is_there_as_it_was() -> None:
    found = {
        component.name: {
            "inputs": {port.name: described(port) for port in component.inputs},
            "outputs": {port.name: port.type for port in component.outputs},
        }
        for component in find_components(Path(__file__).parents[2] / "components")
    }
    assert found == EXPECTED
