"""The compiled pipeline as plain data: a graph of nodes, which may contain graphs themselves.

References (`GraphInput`, `NodeOutput`) are local to their graph, so the meaning of a graph does not depend on where it
is used. This module is independent of azure-ai-ml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from allranks.contract.distributions import processes_per_instance
from allranks.contract.launch import Distribution
from allranks.contract.single import Single
from allranks.contract.templating import used_names
from allranks.errors import Location, Problem
from allranks.plan.environment import NO_ENVIRONMENT, Environment
from allranks.plan.ports import GraphInput, GraphOutput, Input, NodeOutput, Output, Text, Value, needed_nodes
from allranks.plan.sweep import EarlyTermination, Parameter, Sampling, SweepLimits


@dataclass(frozen=True)
class Parallel:
    """The settings of a parallel step.

    entry_script:    the script with `init`, `run` and `shutdown`, relative to the code
    input_data:      the data to divide, such as ``${{inputs.images}}``
    mini_batch_size: files per mini-batch, or bytes of tabular data; None for the default
    partition_keys:  columns by whose values the data is divided, in place of the size
    max_concurrency: worker processes per instance; None: one with GPUs, else one per core
    error_threshold: maximum number of failed items; -1 for no limit
    mini_batch_error_threshold: maximum number of failed mini-batches; -1 for no limit
    max_retries:     maximum retries of a failed mini-batch
    timeout:         seconds per mini-batch
    append_row_to:   the file for the results, such as ``${{outputs.scores}}``; "" discards them
    """

    entry_script: str
    input_data: str
    mini_batch_size: int | None = None
    partition_keys: tuple[str, ...] = ()
    max_concurrency: int | None = None
    error_threshold: int = -1
    mini_batch_error_threshold: int = -1
    max_retries: int = 2
    timeout: int = 60
    logging_level: str = "INFO"
    append_row_to: str = ""

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the inputs that are divided."""
        return tuple(name.name for name in used_names(self.input_data) if name.kind == "inputs")

    def __str__(self) -> str:
        size = f"of size {self.mini_batch_size}" if self.mini_batch_size else "of the default size"
        by = f"by {', '.join(self.partition_keys)}" if self.partition_keys else size
        return f"{', '.join(self.data)}, {by}; {self.max_concurrency or 'as many as fit'} at once on each instance"


EMPTY: Mapping[str, str] = MappingProxyType({})
"""An immutable empty mapping."""


@dataclass(frozen=True)
class Code:
    """The snapshot that a step runs in: a read-only folder, and the digest of its content.

    left_out: files of the source that are not in the snapshot, with the reasons, for messages
    source:   the user's folder or file, for messages; "" if unknown
    """

    folder: str
    digest: str
    left_out: str = field(default="", compare=False)
    source: str = field(default="", compare=False)


@dataclass(frozen=True, kw_only=True)
class _Node:
    """Fields of all nodes. after: names of nodes that must end first, without a data dependency"""

    after: tuple[str, ...] = ()
    location: Location | None = None

    @property
    def at(self) -> str:
        """The location in the user's files, to append to the place of a message; "" if unknown."""
        return f" ({self.location})" if self.location else ""

    def values(self) -> Iterator[Value | str | None]:
        """Yield all values that may refer to another node."""
        node: Any = self  # each kind has inputs, as a field or a property
        yield from (port.value for port in node.inputs)


@dataclass(frozen=True)
class Step(_Node):
    """A node that runs a component's command.

    command:               the template, with ``${{inputs.x}}``, ``${{outputs.y}}`` and ``$[[ ... ]]`` in it
    environment_variables: those of the node, not of its component; bindings are resolved when the step starts
    timeout:               seconds after which the step is stopped; None for no limit
    shm_size:              size of /dev/shm per instance, in bytes
    deterministic:         whether an earlier result of the same inputs may be reused
    ignored_environment:   an environment that the node sets for its component, which azure-ai-ml does not send
    ignored_variables:     names of the component's variables, which azure-ai-ml does not send
    job_tier:              spot, basic, standard or premium; "" if the node does not set it
    azure_only:            keys of the node that have no effect on this machine
    spec:                  the component's file on this machine, for messages; "" if there is none
    tags:                  tags of the component with its requirements (`allranks.contract.requirements`)
    parallel:              settings of a parallel step; None for other steps
    """

    kind: ClassVar[str] = "command"

    name: str
    command: str
    component: str = ""
    version: str = ""
    display_name: str = ""
    description: str = ""
    code: Code | None = None
    environment: Environment = NO_ENVIRONMENT
    environment_variables: Mapping[str, str | GraphInput | NodeOutput | Text] = field(default_factory=lambda: EMPTY)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    distribution: Distribution = field(default_factory=Single)
    instance_count: int = 1
    instance_type: str = ""
    shm_size: int = 2 << 30
    timeout: float | None = None
    deterministic: bool = True
    job_tier: str = field(default="", compare=False)
    azure_only: tuple[str, ...] = field(default=(), compare=False)
    ignored_environment: Environment = field(default=NO_ENVIRONMENT, compare=False)
    ignored_variables: tuple[str, ...] = field(default=(), compare=False)
    spec: str = field(default="", compare=False)
    tags: Mapping[str, str] = field(default_factory=lambda: EMPTY, compare=False)
    parallel: Parallel | None = None

    @property
    def ranks(self) -> int:
        """The number of processes that the step starts at once on this machine."""
        return self.instance_count * processes_per_instance(self.distribution)

    def values(self) -> Iterator[Value | str | None]:
        yield from super().values()
        yield from self.environment_variables.values()


@dataclass(frozen=True)
class Pipeline(_Node):
    """A node that is a pipeline component, which contains a graph.

    inputs: the graph's inputs with their values in the enclosing graph
    """

    kind: ClassVar[str] = "pipeline"

    name: str
    graph: Graph
    component: str = ""
    version: str = ""
    display_name: str = ""
    description: str = ""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True)
class Condition(_Node):
    """An ``if_else`` node. Of its two lists of nodes of the same graph, one runs and the other is skipped.

    condition: a boolean: a literal, an input of the graph or an output of a node
    """

    kind: ClassVar[str] = "condition"
    inputs: ClassVar[tuple[Input, ...]] = ()
    outputs: ClassVar[tuple[Output, ...]] = ()
    component: ClassVar[str] = ""

    name: str
    condition: Value
    then: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()

    @property
    def display_name(self) -> str:
        return self.name

    def values(self) -> Iterator[Value | str | None]:
        yield self.condition


@dataclass(frozen=True)
class _Loop(_Node):
    """The common properties of loops."""

    name: str
    body: Step | Pipeline

    @property
    def component(self) -> str:
        return self.body.component

    @property
    def display_name(self) -> str:
        return self.name

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The body's inputs: for a do_while loop, of the first iteration; else the inputs that all items share."""
        return self.body.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The body's outputs: for a do_while loop, from the last iteration; for a sweep, from the best trial."""
        return self.body.outputs

    def values(self) -> Iterator[Value | str | None]:
        yield from self.body.values()


@dataclass(frozen=True)
class DoWhile(_Loop):
    """A ``do_while`` loop. Its body runs, then repeats while the condition is true, at most `limit` times.

    condition: the boolean output of the body that is read after each iteration; "" repeats up to the limit
    feedback:  pairs of an output of an iteration and an input of the next one
    limit:     1 to 1000 iterations
    """

    kind: ClassVar[str] = "do_while"

    condition: str = ""
    feedback: tuple[tuple[str, str], ...] = ()
    limit: int = 1000


@dataclass(frozen=True)
class ParallelFor(_Loop):
    """A ``parallel_for`` loop. Its body runs once for each item.

    items:           the items, each with a name and values for inputs of the body; or a value with the items as JSON,
                     which is resolved when the loop starts
    outputs:         the values of all iterations, for each output of the body: an mltable of data, a JSON list of
                     primitives
    max_concurrency: maximum number of concurrent iterations; None: as many as the machine's slots allow
    """

    kind: ClassVar[str] = "parallel_for"

    items: tuple[Item, ...] | Value = ()
    outputs: tuple[Output, ...] = ()
    max_concurrency: int | None = None

    def values(self) -> Iterator[Value | str | None]:
        yield from super().values()
        if isinstance(self.items, tuple):
            for item in self.items:
                yield from (value for _, value in item.values)
        else:
            yield self.items


@dataclass(frozen=True)
class Item:
    """One iteration of a parallel_for loop. values: pairs of an input of the body and its value."""

    name: str
    values: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Sweep(_Loop):
    """A sweep. Its body runs once for each trial, with values for the inputs that the search space names.

    metric:   the primary metric, which trials log
    maximize: whether a larger value is better
    """

    kind: ClassVar[str] = "sweep"

    body: Step
    search_space: tuple[Parameter, ...]
    metric: str
    maximize: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    early_termination: EarlyTermination | None = None
    limits: SweepLimits = field(default_factory=SweepLimits)

    @property
    def sampled(self) -> frozenset[str]:
        """The inputs of the body that get their values from the search space."""
        return frozenset(parameter.name for parameter in self.search_space)


@dataclass(frozen=True)
class StandIn(_Node):
    """A node that does not run on this machine. The user provides its outputs.

    what:    the unsupported kind of node, such as "an AutoML job"; "" for a supported kind
    folder:  the user's folder with the outputs; "" if the user provides none, so that the plan cannot run
    """

    kind: ClassVar[str] = "stand_in"

    name: str
    what: str = ""
    folder: str = ""
    component: str = ""
    display_name: str = ""
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()


Node: TypeAlias = Step | Pipeline | Condition | DoWhile | ParallelFor | Sweep | StandIn
"""Any node of a graph. A parallel node is a step."""


@dataclass(frozen=True)
class Graph:
    """Nodes that are connected by data and control edges.

    nodes: in topological order: each node comes after those that it needs
    first: the pipeline's `on_init`, which runs before all other nodes; "" if there is none
    last:  the pipeline's `on_finalize`, which runs after all other nodes, even if they fail; "" if there is none
    """

    nodes: tuple[Node, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[GraphOutput, ...] = ()
    first: str = ""
    last: str = ""

    @cached_property
    def by_name(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def input_by_name(self) -> Mapping[str, Input]:
        return {port.name: port for port in self.inputs}

    @cached_property
    def followers(self) -> Mapping[str, list[Node]]:
        """The nodes that need each node, by its name."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in self.needs(node):
                found.setdefault(name, []).append(node)
        return found

    @cached_property
    def conditions(self) -> Mapping[str, tuple[tuple[str, bool], ...]]:
        """The conditions of each node: pairs of the name of a condition and the outcome for which the node runs."""
        gates: dict[str, list[tuple[str, bool]]] = {}
        for node in self.nodes:
            if isinstance(node, Condition):
                for outcome, names in ((True, node.then), (False, node.otherwise)):
                    for name in names:
                        gates.setdefault(name, []).append((node.name, outcome))
        return {name: tuple(pairs) for name, pairs in gates.items()}

    def needs(self, node: Node) -> tuple[str, ...]:
        """Return the names of the nodes that must end before this one starts, each once."""
        gates = tuple(name for name, _ in self.conditions.get(node.name, ()))
        others: tuple[str, ...] = (self.first,) if self.first not in ("", node.name) else ()
        if node.name == self.last:
            others = tuple(name for name in self.by_name if name != self.last)
        return tuple(dict.fromkeys((*needed_nodes(node.values()), *node.after, *gates, *others)))


@dataclass(frozen=True)
class Plan:
    """A pipeline that is ready to run.

    source:                   the file it was read from
    continue_on_step_failure: whether nodes that do not depend on a failed one still run
    force_rerun:              whether earlier results are ignored
    findings:                 warnings about parts of the file that azure-ai-ml drops; not stored with the plan
    """

    name: str
    graph: Graph
    display_name: str = ""
    description: str = ""
    experiment: str = ""
    source: str = ""
    continue_on_step_failure: bool = True
    force_rerun: bool = False
    findings: tuple[Problem, ...] = field(default=(), compare=False)


def is_command_job(plan: Plan) -> bool:
    """Return whether a plan consists of one command job."""
    # The step of a pipeline has another name, or it may reuse results, which a job on its own never does.
    node = plan.graph.nodes[0] if len(plan.graph.nodes) == 1 else None
    return isinstance(node, Step) and node.name == plan.name and not node.deterministic
