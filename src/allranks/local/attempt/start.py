"""Start the ranks of an attempt: choose their launcher, and send the programs to the instances."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from allranks.contract import logs
from allranks.contract.launch import Launch
from allranks.history.records import StepRecord
from allranks.images import rootfs
from allranks.local import gpus
from allranks.local.attempt.environment import RankProgram
from allranks.local.attempt.stage import StagedInstance
from allranks.local.forkserver import shims
from allranks.local.instances.instance import Instance, InstanceKind
from allranks.local.instances.supervisor import ForkServerSpec, InstanceSpec, Program
from allranks.local.launchers.by_distribution import LAUNCHERS
from allranks.local.launchers.launching import LAUNCHER_FOLDER, Assignment, LaunchedPrograms
from allranks.plan.graph import Step


@dataclass(frozen=True)
class Start:
    """The plan of an attempt's start.

    launching: the programs on each instance
    log:       the log of the launcher's own programs
    folder:    the folder for the launcher's own files
    specs:     the configuration of each instance
    agents:    the name of each instance's agent
    """

    launching: LaunchedPrograms
    log: Path
    folder: Path
    specs: Sequence[InstanceSpec]
    agents: Sequence[str]


def plan_start(
    step: Step,
    record: StepRecord,
    launch: Launch,
    kind: InstanceKind,
    ranks: Sequence[RankProgram],
    variables: Sequence[Mapping[str, str]],
    specs: Sequence[InstanceSpec],
    fork_server: ForkServerSpec | None,
) -> Start:
    """Plan the start of an attempt's ranks.

    variables: the variables that every process on an instance needs, for each instance
    """
    folder = Path(record.folder)
    programs = tuple(rank.program for rank in ranks)
    if fork_server is not None:
        interpreter = Path(fork_server.interpreter)
        forks = [folder / LAUNCHER_FOLDER / f"forks-{number}" for number in range(len(specs))]
        paths = [shims.write(each, interpreter) for each in forks]
        programs = tuple(_with_path(rank.program, paths[rank.process.instance_rank]) for rank in ranks)
        specs = [replace(spec, forks=str(each)) for spec, each in zip(specs, forks, strict=True)]
    mpi_log = folder / logs.mpi_log(record.attempt)
    assignment = Assignment(launch, programs, kind, variables, folder / LAUNCHER_FOLDER, mpi_log)
    launching = LAUNCHERS[step.distribution.type].launch(assignment)
    agents = [f"{record.name}/{record.attempt}/{rank}" for rank in range(len(specs))]
    return Start(launching, assignment.log, assignment.folder, specs, agents)


def _with_path(program: Program, folder: str) -> Program:
    """Return a program with a folder at the front of its PATH."""
    path = os.pathsep.join((folder, program.environment["PATH"]))
    return replace(program, environment={**program.environment, "PATH": path})


def instance_specs(
    step: Step,
    instances: Sequence[Instance],
    staged: Sequence[StagedInstance],
    root: Path | None,
) -> list[InstanceSpec]:
    """Return the configuration of each instance of a step.

    root: the root filesystem of their container; None for that of this machine
    """
    driver = tuple(
        (path, f"{rootfs.DRIVER}/{os.path.basename(path)}") for path in (gpus.driver_files() if root else ())
    )
    hosts = tuple((instance.address, instance.hostname) for instance in instances)
    return [
        InstanceSpec(
            instance.index,
            instance.address,
            instance.hostname,
            hosts,
            step.shm_size,
            folders.tmp,
            folders.keep,
            tuple(folders.read_only),
            str(root or ""),
            driver,
        )
        for instance, folders in zip(instances, staged, strict=True)
    ]
