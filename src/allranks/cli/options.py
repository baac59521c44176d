"""Options and arguments that several commands share, and groups of them.

A command has all options of a group if one of its parameters has the group as its type.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from allranks import packages
from allranks.azure.workspace import WorkspaceOptions
from allranks.catalog import shipped_folder
from allranks.cli.completion import complete_components, complete_inputs, complete_runs, complete_steps
from allranks.cli.parameters import argument, option
from allranks.errors import InputError, Problem
from allranks.local.data import samples

if TYPE_CHECKING:
    from allranks.local.options import Options
    from allranks.local.selection import Selection


def _gpus(value: str) -> str:
    if value not in ("auto", "share") and not value.isdecimal():
        raise typer.BadParameter(f"found {value!r}, expected auto, share, or a number such as 0")
    return value


def _sample(value: str) -> str:
    samples.parse(value)
    return value


def _faults(texts: list[str] | None) -> list[str] | None:
    if texts:
        packages.faults(texts)
    return texts


FolderOption: TypeAlias = Annotated[
    Path | None,
    option("--folder", "Folder for runs and results. Default: .allranks in this folder or a parent.", "DIR"),
]
JsonOption: TypeAlias = Annotated[bool, option("--json", "Print JSON.")]
Format: TypeAlias = Literal["text", "json", "sarif", "github", "junit"]
FormatOption: TypeAlias = Annotated[
    Format,
    option("--format", "Print text (the default), JSON, a SARIF log, GitHub's workflow commands, or JUnit's XML."),
]
YesOption: TypeAlias = Annotated[bool, option("--yes -y", "Do it without asking.")]
RunArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id, the first characters of it, the name of its job or pipeline, azure:JOB, or: latest.",
        autocompletion=complete_runs,
    ),
]
StepArgument: TypeAlias = Annotated[
    str | None,
    argument(
        "STEP",
        "Path of a step or a group of steps, such as train or loop.2.train. Default: every step.",
        autocompletion=complete_steps,
    ),
]
FileArgument: TypeAlias = Annotated[
    str,
    argument(
        "FILE[:NAME]",
        "Python file, notebook, or YAML with a pipeline or job. NAME: a job's variable or a pipeline function.",
        autocompletion=complete_components,
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None,
    option("--set", "Set an input of the pipeline. May be repeated.", "NAME=VALUE", autocompletion=complete_inputs),
]
StandInOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--stand-in",
        "Do not run this step; its outputs are in the folder, an entry for each, or the folder is its only output.",
        "STEP=FOLDER",
    ),
]
LayoutOption: TypeAlias = Annotated[
    str,
    option(
        "--layout -j",
        "For a single component: N instances with M processes each, or M on one. Default: those of its spec.",
        "NxM|M",
    ),
]
InstancesOption: TypeAlias = Annotated[
    Literal["auto", "rack", "loopback"],
    typer.Option(
        "--instances",
        help="rack: Linux namespaces; each instance has its own network, hostname and /tmp. "
        "loopback: addresses on 127.0.0.0/8. auto: rack if this machine supports it.",
    ),
]
EnvironmentOption: TypeAlias = Annotated[
    Literal["auto", "host", "venv", "conda", "container"],
    typer.Option(
        "--environment",
        help="How environments are made on this machine, unless allranks.yaml says so. host: the Python of allranks. "
        "venv: a virtual environment with the Python and the pip packages of the definition. conda: its conda file, by "
        "micromamba. container: its image, built by buildah, podman or Docker. auto: the first one with all packages "
        "of the definition; differences are printed.",
    ),
]
DryRunOption: TypeAlias = Annotated[
    bool,
    option("--dry-run", "Print the plan, each rank's environment, and the copied files, without starting anything."),
]
ChangesOption: TypeAlias = Annotated[bool, option("--dry-run", "Print what would change; change nothing.")]
ComputeOption: TypeAlias = Annotated[str, option("--compute", "Cluster for steps that do not name one.", "NAME")]
StreamedRankOption: TypeAlias = Annotated[
    str, option("--rank", "Rank whose output is printed, or all for that of every rank.", "N|all")
]
GpusOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--gpus",
        metavar="auto|share|N",
        help="auto: one GPU per rank. share: ranks share the GPUs. N: use N GPUs; 0 trains on the CPU.",
        callback=_gpus,
    ),
]
SampleOption: TypeAlias = Annotated[
    str,
    option(
        "--sample",
        "Run on a part of each folder and table of the inputs, evenly spaced: 1%, or 1000 files or rows. The same data "
        "gives the same part.",
        "N%|N",
        callback=_sample,
    ),
]
FaultOption: TypeAlias = Annotated[
    list[str] | None,
    option(
        "--fault",
        "Inject a fault, once in the run: KIND:KEY=VALUE,..., such as kill:rank=3,step=9 or evict:instance=1,after=9s. "
        "May be repeated. Needs the package allranks-lab, whose docs/fault-injection.md lists the kinds.",
        "FAULT",
        callback=_faults,
    ),
]
ForceOption: TypeAlias = Annotated[
    bool, option("--force-rerun", "Run every step, even if an earlier result could be reused.")
]
VerboseOption: TypeAlias = Annotated[
    bool, option("--verbose -v", "Log everything that the engine does, as ALLRANKS_LOG=debug, and print it to stderr.")
]
LatestCodeOption: TypeAlias = Annotated[
    bool,
    option("--latest-code", "Read the pipeline's file again, instead of running the code that the run started with."),
]
SchedulesArgument: TypeAlias = Annotated[
    Path | None,
    argument("FILE|FOLDER", "File or folder with schedules. Default: pipelines/ in this folder or a parent."),
]
ComponentsOption: TypeAlias = Annotated[
    Path | None,
    option("--components", "Folder with components. Default: components/ in this folder or a parent.", "DIR"),
]
LibraryOption: TypeAlias = Annotated[
    bool, option("--library", "The components that come with allranks, instead of a project's.")
]
AssetNamesArgument: TypeAlias = Annotated[
    list[str] | None, argument("NAME", "Names of components or environments. Default: all.")
]


@dataclass(frozen=True)
class AzureOptions(WorkspaceOptions):
    """The workspace of Azure ML."""

    subscription_id: Annotated[
        str, option("--subscription", "Azure subscription. Default: AZUREML_ARM_SUBSCRIPTION.", "ID")
    ] = ""
    resource_group: Annotated[
        str, option("--resource-group -g", "Azure resource group. Default: AZUREML_ARM_RESOURCEGROUP.", "NAME")
    ] = ""
    workspace_name: Annotated[
        str,
        option(
            "--workspace --workspace-name -w",
            "Azure ML workspace. Default: AZUREML_ARM_WORKSPACE_NAME, then config.json.",
            "NAME",
        ),
    ] = ""
    config: Annotated[
        Path | None,
        option(
            "--config", "A workspace's config.json. Default: the one in .azureml/ in this folder or a parent.", "PATH"
        ),
    ] = None


@dataclass(frozen=True)
class MachineOptions:
    """How runs use this machine."""

    instances: InstancesOption = "auto"
    retries: Annotated[
        int,
        typer.Option(
            "--retries",
            min=0,
            help="How many times a failed step is retried. allranks.yaml may have other numbers for steps.",
        ),
    ] = 0
    slots: Annotated[
        int | None,
        option(
            "--slots", "How many ranks may run at once; a larger step runs alone. Default: the number of cores.", min=1
        ),
    ] = None
    gpus: GpusOption = "auto"
    track: Annotated[
        bool, typer.Option("--track/--no-track", help="Create an MLflow run for each step that runs Python.")
    ] = True


@dataclass(frozen=True)
class RunOptions(MachineOptions):
    """How a run is executed on this machine."""

    cold: Annotated[
        bool,
        option(
            "--cold", "Start every rank as a new process, instead of forking it from one with the imported packages."
        ),
    ] = False
    start_timeout: Annotated[
        float,
        typer.Option(
            "--start-timeout",
            metavar="SECONDS",
            min=0.1,
            help="How long an emulated instance may take to start its processes. The step then fails and names it.",
        ),
    ] = 20.0
    stall: Annotated[
        float,
        typer.Option(
            "--stall",
            metavar="SECONDS",
            min=0,
            help="How long the ranks of a step may make no progress while some wait in a collective. The step then "
            "fails, and names the missing rank. 0: no limit.",
        ),
    ] = 300.0
    offline: Annotated[
        bool, option("--offline", "Use no network: data comes from the cache, and instances reach only each other.")
    ] = False
    faults: FaultOption = None
    verbose: VerboseOption = False

    def options(self, **others: Any) -> Options:
        """Return the options of a run. others: options that are not in the group"""
        from allranks.local.options import Options  # takes 0.05 s to import, which other commands do not need

        values = {**vars(self), "faults": self.faults or ()}
        del values["verbose"]
        return Options(**values, **others)


@dataclass(frozen=True)
class SelectionOptions:
    """Which steps a run executes."""

    start: Annotated[
        list[str] | None,
        option(
            "--from",
            "Run this step and everything after it, even if results could be reused; reuse what it needs. May be "
            "repeated.",
            "STEP",
        ),
    ] = None
    only: Annotated[
        list[str] | None, option("--only", "Run only this step; reuse what it needs. May be repeated.", "STEP")
    ] = None
    until: Annotated[
        list[str] | None, option("--until", "Run only this step and what it needs. May be repeated.", "STEP")
    ] = None

    def selection(self) -> Selection:
        """Return the selection. Raise InputError for options that contradict each other."""
        from allranks.local.selection import Selection  # as long as the options of a run

        return Selection(tuple(self.start or ()), tuple(self.only or ()), tuple(self.until or ()))


def chosen_components(folder: Path | None, library: bool) -> Path | None:
    """Return the folder of the library's components, or the given one. Raise InputError if both are requested."""
    if library and folder:
        raise InputError(Problem("--library", f"the folder {folder} is given too", "one of them", "remove one"))
    return shipped_folder() / "components" if library else folder


def confirm(question: str, command: str, yes: bool, code: int = 1) -> None:
    """Ask the user, unless --yes is given. Exit with `code` if the answer is no.

    Raise InputError if there is no terminal to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(Problem(command, "there is no terminal to ask", "", "agree to it: --yes"))
    if not typer.confirm(question):
        sys.exit(code)
