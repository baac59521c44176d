"""What the service checks of a component before it takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allranks_client.messages import user_error
from fake.name_rules import is_port
from fake.references import check_reference, parse

if TYPE_CHECKING:
    from fake.service import FakeAzure


def check_component(azure: FakeAzure, properties: dict[str, Any]) -> None:
    """Raises Refusal where it names an environment, code or component that does not exist, or a port in a wrong way."""
    spec = properties["componentSpec"]
    for kind in ("inputs", "outputs"):
        for port in spec.get(kind) or {}:
            if not is_port(port):
                raise user_error(f"Component {spec.get('name')}: '{port}' is not a valid name in its {kind}.")
    for name in _named(spec):
        found = parse(name)
        if found is None:
            raise user_error(f"'{name}' is not a valid asset id.")
        check_reference(azure, found)


def _named(spec: dict[str, Any]) -> list[str]:
    named = [spec.get(key) for key in ("environment", "code")]
    for job in (spec.get("jobs") or {}).values():
        named.append(job.get("componentId"))
    return [name for name in named if isinstance(name, str)]
