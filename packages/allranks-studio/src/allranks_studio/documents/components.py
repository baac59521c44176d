"""The specs of the components that the palette names: ``library:NAME``, ``project:PATH`` or ``registered:NAME``."""

from collections.abc import Mapping
from pathlib import Path

from allranks.catalog import shipped_specs
from allranks.plan.assets import mapping_file
from allranks.sdk import bounded_yaml
from allranks.sdk.paths import nearest
from allranks_studio.documents.rewiring import refused


def spec_of(reference: str, file: Path) -> Path:
    """Return the spec of a component for the pipeline in a file. Raise InputError if it does not exist."""
    origin, _, name = reference.partition(":")
    if origin == "registered":
        spec = registered_names(file).get(name)
    elif origin == "library":
        spec = shipped_specs().get(name)
    else:
        spec = next((folder / name for folder in file.parents if (folder / name).is_file()), None)
    if spec is None or not spec.is_file():
        raise refused(f"component {reference}", "it does not exist", "a component of the palette", "choose another one")
    return spec


def registered_names(file: Path) -> Mapping[str, Path]:
    """Return the specs of the components that the ``allranks.yaml`` for a file names, by name."""
    mapping = nearest(file.parent, *mapping_file.NAMES)
    entries = mapping_file.read(mapping).entries.get("components", ()) if mapping else ()
    return {entry.written: entry.path for entry in entries if not entry.is_pattern}


def declared(spec: Path) -> tuple[str, Mapping[str, str]]:
    """Return the type of a component, and the types of its inputs."""
    content = bounded_yaml.read_values(spec)
    content = content if isinstance(content, dict) else {}
    inputs = content.get("inputs")
    ports = inputs.items() if isinstance(inputs, dict) else ()
    kinds = {str(name): str(port.get("type", "")) for name, port in ports if isinstance(port, dict)}
    return str(content.get("type", "command")), kinds
