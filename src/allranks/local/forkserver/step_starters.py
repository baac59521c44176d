"""The starter of a step's ranks: prepared before it is needed, and chosen when the ranks are to start."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from allranks.contract.job import Job
from allranks.contract.produce import processes
from allranks.local import interpreters, machine_variables
from allranks.local.attempt import rank_environment
from allranks.local.attempt.rank_environment import launch_of
from allranks.local.forkserver.starts.python_programs import python_program
from allranks.local.forkserver.starts.specs import StarterSpecs
from allranks.local.instances.kinds import InstanceKind
from allranks.local.instances.programs import Program, StarterSpec
from allranks.local.instances.supervisor import Supervisor
from allranks.local.scope import Scope
from allranks.plan.graph import Graph, Step

_PLACEHOLDER = re.compile(r"\$\{\{[^}]*\}\}")
_NO_JOB = Job("", "", "")


class StepStarters:
    """The starters of one run.

    source: the pipeline's file
    shell:  runs the commands
    tracks: whether a step has an MLflow run
    cold:   whether the ranks of a step are started as new processes, without a starter
    used:   the starters that steps have used, the first one first
    """

    def __init__(
        self,
        supervisor: Supervisor,
        kind: InstanceKind,
        source: str,
        shell: str,
        tracks: Callable[[Step], bool],
        cold: Callable[[Step], bool],
    ) -> None:
        self._supervisor = supervisor
        self._kind = kind
        self._source = source
        self._shell = shell
        self._tracks = tracks
        self._cold = cold
        self.used: list[StarterSpec] = []
        self._specs = StarterSpecs()
        self._followers: dict[int, tuple[Graph, dict[str, list[Step]]]] = {}

    def choose(self, step: Step, programs: Sequence[Program], interpreter: Path) -> StarterSpec | None:
        """Return the starter for the ranks of a step; None if they start cold."""
        if self._cold(step):
            return None
        spec = self._specs.of_programs(programs, interpreter, _code(step), tracked=self._tracks(step))
        if spec is not None and spec not in self.used:
            self.used.append(spec)
        return spec

    async def prepare(self, step: Step, scope: Scope, gpus: Sequence[dict[str, str]] = ()) -> None:
        """Start the starter that the step will probably need, without waiting for it.

        gpus: for each instance, the variables that select its GPUs, if they are known
        """
        if not self._cold(step) and (spec := self._expected(step, scope, gpus)) is not None:
            await self._supervisor.prepare(spec)

    async def prepare_followers(self, step: Step, scope: Scope) -> None:
        """Start the starters of the steps that need this one, which has started."""
        for follower in self._followers_in(scope.graph).get(step.name, ()):
            await self.prepare(follower, scope)

    def _expected(self, step: Step, scope: Scope, gpus: Sequence[dict[str, str]]) -> StarterSpec | None:
        """Return the starter for a step whose inputs may not be there yet."""
        code = _code(step)
        if not code:
            return None
        interpreter = interpreters.of_environment(step.environment, self._source)
        command = _PLACEHOLDER.sub("x", step.command.replace("$[[", " ").replace("]]", " "))
        own = rank_environment.variables_of(step, scope)
        paths = {"PATH": machine_variables.search_path(os.environ, interpreter), **own}
        if python_program(self._shell, command, paths, code, interpreter) is None:
            return None
        launch = launch_of(step, self._kind.instances(range(step.instance_count)), self._kind)
        ranks = processes(launch)
        machine = machine_variables.of(os.environ, interpreter, len(ranks))
        programs = []
        for process in ranks:
            selected = gpus[process.instance_rank] if gpus else {}
            variables = rank_environment.given(own, _NO_JOB, launch, process, self._kind)
            environment = {**machine, **selected, **variables}
            python = python_program(self._shell, command, environment, code, interpreter)
            programs.append(Program("", (), environment, code, "", python))
        return self._specs.of_programs(programs, interpreter, code, tracked=self._tracks(step))

    def _followers_in(self, graph: Graph) -> dict[str, list[Step]]:
        """Return the steps of a graph by the nodes that they need."""
        _, followers = self._followers.get(id(graph), (None, {}))
        if id(graph) not in self._followers:
            for node in graph.nodes:
                if isinstance(node, Step):
                    for name in graph.needs(node):
                        followers.setdefault(name, []).append(node)
            self._followers[id(graph)] = graph, followers  # the graph too, so that its id stays its own
        return followers


def _code(step: Step) -> str:
    return step.code.folder if step.code else ""
