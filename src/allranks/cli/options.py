"""Options and arguments that several commands share, groups of them, and the values that users give with them.

A parameter of a command whose class is a group stands for the options of the group, which are the group's fields.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from allranks.azure.workspace import WorkspaceOptions
from allranks.cli import completion
from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from allranks.local.options import Options
    from allranks.local.selection import Selection


AS_AZURE = "--as-azure"

ALL_RANKS = "all"
"""Of --rank: the output of every rank is printed."""

_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = "a number with m, h, d or w: minutes, hours, days or weeks"

REMOVED = {
    "--params": "set each input with `--set NAME=VALUE`.",
    "--mpi": "mpirun starts the ranks of all instances through the engine. Use the command without it.",
}
"""What to do instead, by the name of an option that no longer exists."""


def option(names: str, help: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an option whose default its help states, if it is not obvious. names: separated by spaces"""
    return typer.Option(*names.split(), help=" ".join(help.split()), metavar=metavar, show_default=False, **settings)


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """Return an argument whose default its help states, if it is not obvious."""
    return typer.Argument(metavar=metavar, help=" ".join(help.split()), show_default=False, **settings)


def _gpus(value: str) -> str:
    if value not in ("auto", "share") and not value.isdecimal():
        raise typer.BadParameter(f"found {value!r}, expected auto, share, or a number such as 0")
    return value


def _sample(value: str) -> str:
    from allranks.local.data.samples import parse

    parse(value)
    return value


def _faults(texts: list[str] | None) -> list[str] | None:
    if texts:
        from allranks import packages

        packages.faults(texts)
    return texts


FolderOption: TypeAlias = Annotated[
    Path | None,
    option("--folder", "Folder for runs and results. Default: .allranks in this folder or a parent.", "DIR"),
]
JsonOption: TypeAlias = Annotated[bool, option("--json", "Print JSON.")]
YesOption: TypeAlias = Annotated[bool, option("--yes -y", "Do it without asking.")]
RunArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run's id, the first characters of it, the name of its job or pipeline, azure:JOB, or: latest.",
        autocompletion=completion.runs,
    ),
]
StepArgument: TypeAlias = Annotated[
    str | None,
    argument(
        "STEP",
        "Path of a step or a group of steps, such as train or loop.2.train. Default: every step.",
        autocompletion=completion.steps,
    ),
]
FileArgument: TypeAlias = Annotated[
    str,
    argument(
        "FILE[:NAME]",
        "Python file, notebook, or YAML with a pipeline or job. NAME: a job's variable or a pipeline function.",
    ),
]
SetOption: TypeAlias = Annotated[
    list[str] | None, option("--set", "Set an input of the pipeline. May be repeated.", "NAME=VALUE")
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
        "--layout -j", "For a single component: N instances with M processes each. Default: those of its spec.", "NxM"
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
        help="How environments are realised here, unless allranks.yaml says so. host: the Python of allranks. venv: a "
        "virtual environment with the Python and the packages of the definition, from PyPI. conda: by micromamba or "
        "conda. container: its image, built by buildah, podman or Docker. auto: the first that is true to the "
        "definition; what differs is printed.",
    ),
]
DryRunOption: TypeAlias = Annotated[
    bool,
    option("--dry-run", "Print the plan, each rank's environment, and the copied files, without starting anything."),
]
ChangesOption: TypeAlias = Annotated[bool, option("--dry-run", "Print what would change; change nothing.")]
ComputeOption: TypeAlias = Annotated[str, option("--compute", "Cluster for steps that do not name one.", "NAME")]
RetriesOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--retries",
        min=0,
        help="How many times a failed step is retried. allranks.yaml may have other numbers for steps.",
    ),
]
StreamedRankOption: TypeAlias = Annotated[
    str, option("--rank", "Rank whose output is printed, or all for that of every rank.", "N|all")
]
SlotsOption: TypeAlias = Annotated[
    int | None,
    option("--slots", "How many ranks may run at once; a larger step runs alone. Default: the number of cores.", min=1),
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
TrackOption: TypeAlias = Annotated[
    bool, typer.Option("--track/--no-track", help="Create an MLflow run for each step that runs Python.")
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
    list[str] | None,
    argument("NAME", "Names of components or environments. Default: all."),
]


@dataclass(frozen=True)
class AzureOptions:
    """The workspace of Azure ML."""

    subscription: Annotated[
        str, option("--subscription", "Azure subscription. Default: AZUREML_ARM_SUBSCRIPTION.", "ID")
    ] = ""
    resource_group: Annotated[
        str, option("--resource-group -g", "Azure resource group. Default: AZUREML_ARM_RESOURCEGROUP.", "NAME")
    ] = ""
    workspace: Annotated[
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

    def of(self, registry: str = "") -> WorkspaceOptions:
        """Return the values. Raise InputError if both a workspace and a registry are given."""
        if registry and self.workspace:
            found = f"the workspace {self.workspace} is given too"
            raise InputError(Problem(f"--registry {registry}", found, "one of them", "remove one of the options"))
        return WorkspaceOptions(self.subscription, self.resource_group, self.workspace, registry, self.config)


@dataclass(frozen=True)
class RunOptions:
    """How a run is executed on this machine."""

    instances: InstancesOption = "auto"
    retries: RetriesOption = 0
    slots: SlotsOption = None
    gpus: GpusOption = "auto"
    track: TrackOption = True
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
            help="How long the ranks of a step may make no progress while some wait in a collective. It then "
            "fails, and names the rank that is not there. 0: no limit.",
        ),
    ] = 300.0
    offline: Annotated[
        bool,
        option("--offline", "Use no network: data comes from the cache, and instances reach only each other."),
    ] = False
    faults: FaultOption = None
    verbose: VerboseOption = False

    def of(self, **others: Any) -> Options:
        """Return the options of a run. others: those that are not in the group"""
        from allranks.local.options import Options

        values = {**vars(self), "faults": self.faults or ()}
        return Options(**{name: value for name, value in values.items() if name != "verbose"}, **others)


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

    def of(self) -> Selection:
        """Return the selection. Raise InputError for options that contradict each other."""
        from allranks.local.selection import Selection

        return Selection.of(self.start, self.only, self.until)


def components_of(folder: Path | None, library: bool) -> Path | None:
    """Return the folder of the library's components, or the given one. Raise InputError if both are requested."""
    from allranks.catalog import shipped_folder

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


def streamed(rank: str) -> str:
    """Return the value of --rank. Raise InputError unless it is a number or `ALL_RANKS`."""
    if rank != ALL_RANKS and not re.fullmatch(r"[0-9]{1,6}", rank):
        raise InputError(Problem(f"--rank {rank}", "it is not a rank", f"a number, or {ALL_RANKS}"))
    return rank


def settings_of(
    pairs: list[str] | None,
    *,
    option: str = "--set",
    example: str = "epochs=5",
    form: str = "NAME=VALUE",
) -> dict[str, str]:
    """Return the values of --set, or of another option, as text, by name.

    Raise InputError for a pair without "=" or a repeated name.
    """
    settings: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(Problem(f"{option} {pair}", f"it is not {form}", form, f"for example: {option} {example}"))
        if name in settings:
            raise InputError(Problem(f"{option} {pair}", f"{name} is given twice", "", "remove one of them"))
        settings[name] = value
    return settings


def stand_ins_of(pairs: list[str] | None) -> dict[str, str]:
    """Return the folders of --stand-in as settings of a run. Raise InputError as `settings_of`."""
    from allranks.plan.reader.settings import with_stand_ins

    folders = settings_of(pairs, option="--stand-in", example="train=results/train", form="STEP=FOLDER")
    return with_stand_ins({}, folders)


def layout_settings(text: str) -> dict[str, str]:
    """Return the inputs of a component that set its layout, from a text such as 2x4; none if it is empty.

    Raise InputError for any other text.
    """
    from allranks.contract import layout

    if not text:
        return {}
    counts = layout.parse(text, "-j")
    return {name: str(getattr(counts, name)) for name in ("instance_count", "process_count_per_instance")}


def seconds(age: str, option: str) -> float:
    """Return an age such as ``30d`` in seconds. Raise InputError, which names the option, for any other text."""
    if (value := _seconds(age)) is None:
        raise InputError(Problem(f"{option} {age}", "it is not an age", _UNITS, f"for example: {option} 30d"))
    return value


def moment(text: str, option: str) -> float:
    """Return a date with an optional time, or the time that was an age ago, in seconds since the epoch.

    A date without a time zone is in the time zone of this machine. Raise InputError for any other text.
    """
    age = _seconds(text)
    if age is not None:
        return time.time() - age
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        found, expected = (
            "it is neither a date nor an age",
            f"a date such as 2026-07-04 or 2026-07-04T12:00, or {_UNITS}",
        )
        raise InputError(Problem(f"{option} {text}", found, expected, f"{option} 7d")) from None


def _seconds(age: str) -> float | None:
    match = _AGE.fullmatch(age)
    return None if match is None else float(int(match[1]) * _SECONDS[match[2]])
