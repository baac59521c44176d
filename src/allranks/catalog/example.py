"""Write the example of a component: a pipeline in azure-ai-ml's Python DSL with one step."""

from allranks.catalog import shipped_specs
from allranks.catalog.find import ComponentInfo
from allranks.sdk.paths import shown


def example(component: ComponentInfo) -> str:
    """Return the pipeline, whose inputs are those of the component without a default; "" for a component in Python."""
    if component.path.suffix == ".py":
        return ""
    name, required = component.folder, [port for port in component.inputs if not port.optional and port.default is None]
    lines = ["from azure.ai.ml import Input, dsl" if required else "from azure.ai.ml import dsl"]
    if component.path == shipped_specs().get(name):
        lines.append(f"from allranks.library import {name}")
    else:
        lines[0] += ", load_component"
        lines += ["", f'{name} = load_component("{shown(component.path)}")']
    inputs = ", ".join(f'{port.name}: Input(type="{port.type}")' for port in required)
    values = ", ".join(f"{port.name}={port.name}" for port in required)
    lines += ["", "", "@dsl.pipeline()", f"def {name}_pipeline({inputs}):", f"    step = {name}({values})"]
    if component.outputs:
        lines.append("    return {")
        lines += [f'        "{port.name}": step.outputs.{port.name},' for port in component.outputs]
        lines.append("    }")
    return "\n".join(lines)
