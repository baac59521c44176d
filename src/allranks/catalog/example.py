"""Write examples of components in azure-ai-ml's Python DSL."""

from allranks.catalog import shipped_specs
from allranks.catalog.find import ComponentInfo
from allranks.sdk.paths import shown


def definition(component: ComponentInfo) -> str:
    """Return the Python code that defines the component's function; "" for a component in Python."""
    if component.path.suffix == ".py":
        return ""
    if component.path == shipped_specs().get(component.folder):
        return f"from allranks.library import {component.folder}"
    load = f'{component.folder} = load_component("{shown(component.path)}")'
    return f"from azure.ai.ml import load_component\n\n{load}"


def example(component: ComponentInfo) -> str:
    """Return a pipeline with the component as its step, whose inputs are those of the component without a default; ""
    for a component in Python."""
    name, required = component.folder, [port for port in component.inputs if not port.optional and port.default is None]
    if not (lines := definition(component).splitlines()):
        return ""
    lines.insert(0, "from azure.ai.ml import Input, dsl" if required else "from azure.ai.ml import dsl")
    inputs = ", ".join(f'{port.name}: Input(type="{port.type}")' for port in required)
    values = ", ".join(f"{port.name}={port.name}" for port in required)
    lines += ["", "", "@dsl.pipeline()", f"def {name}_pipeline({inputs}):", f"    step = {name}({values})"]
    if component.outputs:
        lines.append("    return {")
        lines += [f'        "{port.name}": step.outputs.{port.name},' for port in component.outputs]
        lines.append("    }")
    return "\n".join(lines)
