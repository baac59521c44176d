"""The launchers that start the ranks of a script, and how to read a command with one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from allranks.contract.layout import Layout
from allranks.errors import InputError, Problem

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Launcher:
    """A launcher and its options, whose names are without leading hyphens and with underscores inside.

    start:     the command that starts it on an instance of Azure ML; {program}, {nodes}, {each} (processes on an
               instance), {total}, {options} (of the user) and {rank} (the variable of the instance's rank) are replaced
    instances, each, total: its options for the number of instances, of processes on each, and of all processes
    by_platform: the options whose values Azure ML decides
    flags:     the options without a value
    default:   of `each`; None: one process for each GPU
    """

    start: str = ""
    instances: frozenset[str] = frozenset()
    each: frozenset[str] = frozenset()
    total: frozenset[str] = frozenset()
    by_platform: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    default: int | None = None


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TORCHRUN = Launcher(
    "{program} --nnodes {nodes} --node-rank {rank} --nproc-per-node {each} "
    "--master-addr $MASTER_ADDR --master-port $MASTER_PORT{options}",
    instances=_names("nnodes"),
    each=_names("nproc_per_node"),
    by_platform=_names(
        "node_rank master_addr master_port standalone local_addr rdzv_backend rdzv_endpoint rdzv_id rdzv_conf"
    ),
    flags=_names("m module no_python run_path standalone use_env virtual_local_rank"),
    default=1,
)
ACCELERATE = Launcher(
    # Without GPUs it would start one process. It is told that there are several, and its processes that there are none.
    "[ -e /dev/nvidiactl ] || export ACCELERATE_USE_CPU=true; "
    "{program} --num_machines {nodes} --machine_rank {rank} --num_processes {total} --multi_gpu --same_network "
    "--main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT{options}",
    instances=_names("num_machines"),
    total=_names("num_processes"),
    by_platform=_names(
        "machine_rank main_process_ip main_process_port same_network multi_gpu cpu rdzv_backend rdzv_conf "
        "deepspeed_hostfile deepspeed_inclusion_filter deepspeed_exclusion_filter gpu_ids"
    ),
    flags=_names(
        "cpu debug downcast_bf16 dynamo_use_dynamic dynamo_use_fullgraph dynamo_use_regional_compilation "
        "enable_cpu_affinity fp8_use_autocast_during_eval m module multi_gpu no_python no_tpu_cluster q quiet "
        "same_network tpu tpu_cluster tpu_use_sudo use_deepspeed use_fsdp use_megatron_lm use_parallelism_config"
    ),
)
DEEPSPEED = Launcher(
    # It knows the instances by a hostfile, and reaches none of them.
    "seq -f 'instance-%.0f slots={each}' {nodes} > hostfile; "
    "{program} --hostfile hostfile --no_ssh --node_rank {rank} --num_gpus {each} "
    "--master_addr $MASTER_ADDR --master_port $MASTER_PORT{options}",
    instances=_names("num_nodes"),
    each=_names("num_gpus num_accelerators"),
    by_platform=_names(
        "H hostfile i include e exclude node_rank master_addr master_port launcher launcher_args no_ssh no_ssh_check "
        "force_multi ssh_port"
    ),
    flags=_names("bind_cores_to_rank force_multi module no_local_rank no_python no_ssh no_ssh_check q quiet save_pid"),
)
MPIRUN = Launcher(
    total=_names("n np c"),
    each=_names("N npernode ppn"),
    flags=_names(
        "allow_run_as_root oversubscribe nooversubscribe bind_to_core bind_to_none bind_to_socket bycore bynode byslot "
        "bysocket display_map display_allocation display_devel_map gloo mpi merge_stderr_to_stdout nolocal pernode q "
        "quiet report_bindings tag_output timestamp_output use_hwthread_cpus v verbose"
    ),
    default=1,
)
LAUNCHERS: Mapping[str, Launcher] = {
    "torchrun": TORCHRUN,
    "torch.distributed.launch": TORCHRUN,
    "accelerate launch": ACCELERATE,
    "deepspeed": DEEPSPEED,
    "mpirun": MPIRUN,
    "mpiexec": MPIRUN,
    "horovodrun": MPIRUN,
}
"""The launchers by their names in messages."""

OF_ALL_INSTANCES = frozenset(name for name, of in LAUNCHERS.items() if of in (DEEPSPEED, MPIRUN))
"""Launchers that start the ranks of all instances from the first one; the others start those of their own instance."""

MODULES = {
    "accelerate.commands.launch": "accelerate launch",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.launch": "torch.distributed.launch",
    "torch.distributed.run": "torchrun",
}
"""The launchers by the modules that `python -m` starts."""

_TWO_VALUES = _names("mca gmca")
"""Options of mpirun with two values."""

# The ranks of all attempts would share one store, and might read the address of a rank that has ended
# (pytorch/pytorch#135712, still so in torch 2.13).
_TORCHRUN_AGAIN = (
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 {program} --nnodes {nodes} --nproc-per-node {each} --rdzv-backend c10d "
    "--rdzv-id launch --rdzv-endpoint $MASTER_ADDR:$MASTER_PORT --rdzv-conf is_host=$(({rank} == 0)){options}"
)
"""torchrun's start if it starts the ranks of several instances again after a failure."""

_INSTEAD_OF_MULTI_GPU = re.compile(r"--(config_file|use_deepspeed|use_fsdp|use_megatron_lm)\b")


def find(words: Sequence[str]) -> tuple[str, int] | None:
    """Return the launcher that a command starts, and how many of its words name the launcher; None without one."""
    name = PurePath(words[0]).name if words else ""
    if name == "accelerate":
        return ("accelerate launch", 2) if words[1:] and words[1] == "launch" else None
    if name.startswith("python") and "-m" in words[:-1]:
        module = words.index("-m") + 1
        return (MODULES[words[module]], module + 1) if words[module] in MODULES else None
    return (name, 1) if name in LAUNCHERS else None


def start_command(launcher: Launcher, program: str, layout: Layout, options: str = "", rank: str = "$NODE_RANK") -> str:
    """Return the command that starts a launcher on an instance of Azure ML, without the script.

    program: the words that start it
    options: more options of it
    rank:    the variable of the instance's rank
    """
    nodes, each = layout.instance_count, layout.process_count_per_instance
    start = launcher.start
    if launcher is TORCHRUN and nodes > 1 and "--max-restarts" in options.replace("_", "-"):
        start = _TORCHRUN_AGAIN
    if layout.world_size == 1 or _INSTEAD_OF_MULTI_GPU.search(options):
        start = start.replace(" --multi_gpu", "")
    options = f" {options}" if options else ""
    return start.format(program=program, nodes=nodes, each=each, total=layout.world_size, options=options, rank=rank)


@dataclass(frozen=True)
class Pasted:
    """A command as it is typed at a terminal: a script, with or without a launcher in front.

    script:    its path and its arguments
    variables: the assignments in front of the command
    name:      the launcher's, as in LAUNCHERS; "" without a launcher
    program:   the words that start the launcher
    options:   of the launcher, as far as they remain valid on Azure ML
    dropped:   options of the launcher that Azure ML decides
    instances, each, total: the layout as far as the options say it, each with its option
    """

    script: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    program: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    instances: tuple[str, int] | None = None
    each: tuple[str, int] | None = None
    total: tuple[str, int] | None = None


def read(words: Sequence[str]) -> Pasted:
    """Read a command. Raise InputError if it has no script, starts a module instead, or an option says no number."""
    variables = {}
    while words and _ASSIGNMENT.match(words[0]):
        name, _, variables[name] = words[0].partition("=")
        words = words[1:]
    found = find(words)
    if found is None:
        return Pasted(_script(words, "the command"), variables)
    name, length = found
    launcher, program, words = LAUNCHERS[name], tuple(words[:length]), words[length:]
    options: list[str] = []
    dropped: list[str] = []
    counts: dict[str, tuple[str, int] | None] = {}
    while words and words[0].startswith("-"):
        text, equals, value = words[0].partition("=")
        option = text.lstrip("-").replace("-", "_")
        length = 1 if equals or option in launcher.flags else 3 if option in _TWO_VALUES else 2
        written, words = words[:length], words[length:]
        value = value if equals else (*written, "")[1]
        kind = next((kind for kind in ("instances", "each", "total") if option in getattr(launcher, kind)), "")
        if option in ("m", "module", "no_python", "run_path"):
            expected = "the path of a script"
            raise InputError(Problem(f"{text} of {name}", "it starts something else than a script", expected))
        if kind:
            counts[kind] = _count(f"{text} {value}", value, name)
        elif option == "x" and "=" in value:  # of mpirun
            variable, _, variables[variable] = value.partition("=")
        elif launcher is MPIRUN or option in launcher.by_platform:
            dropped.append(" ".join(written))
        elif option != "use_env":  # what torchrun always does
            options += written
    return Pasted(_script(words, name), variables, name, program, tuple(options), tuple(dropped), **counts)


def _count(option: str, value: str, launcher: str) -> tuple[str, int] | None:
    """Return an option and its number; None if it says as many as there are."""
    if value in ("auto", "gpu", "-1"):
        return None
    if not value.isdecimal() or not int(value):
        raise InputError(Problem(f"{option} of {launcher}", "it is not one number of at least 1", "such as 2"))
    return option, int(value)


def _script(words: Sequence[str], owner: str) -> tuple[str, ...]:
    """Return a script and its arguments, without a Python in front."""
    if words and _PYTHON.fullmatch(PurePath(words[0]).name):
        words = words[1:]
        while words and words[0] == "-u":
            words = words[1:]
    if not words or words[0].startswith("-"):
        found = f"{words[0]} in place of a script" if words else "no script"
        fix = "for example: allranks launch -j 2x4 train.py --epochs 3"
        raise InputError(Problem(owner, found, "the path of a script", fix))
    return tuple(words)
