"""Place findings in the text, and offer the fix as an edit where there is exactly one."""

from typing import Any

from allranks.contract.templating import PRIMITIVES
from allranks.errors import InputError
from allranks_studio.documents.canvas import Graph, InputPort, Node
from allranks_studio.documents.codec import edit_data
from allranks_studio.documents.edits import FromOutput, SetInput
from allranks_studio.documents.rewiring import graph_at, needs, node_at


def located(finding: dict[str, Any], graph: Graph | None) -> dict[str, Any]:
    """Return a finding with the line of its port, or else of its node, and with the edit that is its fix."""
    try:
        node = node_at(graph, finding["node"]) if graph is not None and finding["node"] else None
    except InputError:
        node = None
    if graph is None or node is None:
        return finding
    port = next((port for port in node.inputs if port.name == finding["port"]), None)
    line = finding["line"] or (port.line if port is not None else 0) or node.first
    if port is None or port.value is not None or port.locked or node.lock is not None or port.type in PRIMITIVES:
        return {**finding, "line": line}
    sources = _sources(graph, node, port)
    sources = [source for source in sources if source.port == port.name] or sources
    if len(sources) != 1:
        return {**finding, "line": line}
    (source,) = sources
    edit = edit_data(SetInput(node.path, port.name, source))
    return {**finding, "line": line, "fix": f"connect it to {source.node}.{source.port}", "edits": [edit]}


def _sources(graph: Graph, node: Node, port: InputPort) -> list[FromOutput]:
    """Return the outputs of the input's type that it can be connected to without a cycle."""
    inner = graph_at(graph, node.path.rpartition(".")[0])
    later, last = {node.name}, set[str]()
    while later != last:
        last = later
        later = later | {other.name for other in inner.nodes if needs(other) & last}
    return [
        FromOutput(other.name, output.name)
        for other in inner.nodes
        for output in other.outputs
        if other.name not in later and output.type == port.type
    ]
