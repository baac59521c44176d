"""Set variables of NCCL and UCX that depend on the hardware, before the process group starts."""

import json
import os
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path

from allranks.contract import variables
from allranks.contract.rank_env import RankEnv
from allranks.hardware import nccl, network, recognition, sizes, traps
from allranks.hardware.nccl import SOCKET_INTERFACE, NetworkVariable
from allranks.hardware.network import Device
from allranks.hardware.sizes import Size
from allranks.runtime.notes import note

APPLIED = "ALLRANKS_FABRIC"
"""Variable with the applied settings, as JSON. A process that inherits them removes them first, because other values
may be right for another instance or number of ranks."""


def apply(
    env: RankEnv,
    interface: str | None,
    *,
    gpus: int,
    environ: MutableMapping[str, str] = os.environ,
    root: Path = Path("/"),
) -> None:
    """Set the network variables that this instance needs. Print what was set and why, once per instance.

    interface: network interface towards rank 0; None: the libraries choose
    gpus:      number of GPUs that this process sees
    environ:   the environment to change
    root:      root of the file system with the hardware and the files of Azure and NCCL

    ALLRANKS_SIZE names the instance's size. Without it, the size is recognised by the hardware that is found; an
    instance without InfiniBand and GPUs gets the interface only, and nothing is printed. Variables that the user or
    NCCL's own files have set do not change; the printed line names them. With ALLRANKS_SIZE=none, only the interface is
    set."""
    inherited = _remove_inherited(environ)
    name = variables.text(environ, variables.SIZE)
    # Images have the topology files on every size.
    sysfs, topology = root / "sys/class/infiniband", root / "opt/microsoft"
    has_hardware = bool(name) or sysfs.is_dir() or (gpus > 0 and topology.is_dir())
    if not has_hardware or name == variables.NO_SIZE:
        if interface is not None:
            environ.setdefault(SOCKET_INTERFACE, f"={interface}")
        return
    devices = network.devices(sysfs)
    if name:
        size = sizes.known(name)
        family = size.topology if size else ""
    else:
        recognised = recognition.recognise(root)
        size, family = recognised.size, recognised.family
    settings = _settings(env, size, family, devices, interface, gpus, topology)
    existing = {**nccl.configured(environ, root / "etc/nccl.conf"), **environ}
    added = {setting.name: setting.value for setting in settings if setting.name not in existing}
    environ.update(added)
    if name or added.keys() - {SOCKET_INTERFACE}:
        environ[APPLIED] = json.dumps(added)
    if env.local_rank == 0 and not inherited:
        _print_settings(env, settings, existing, size, devices)
        if name and size is None:
            _note(env, f"{variables.SIZE}={name} is not a known size: see `allranks doctor --sizes --retired`")


def _remove_inherited(environ: MutableMapping[str, str]) -> bool:
    """Unset inherited settings that have not been changed since. Return whether there were any."""
    inherited = environ.pop(APPLIED, None)
    for name, value in json.loads(inherited or "{}").items():
        if environ.get(name) == value:
            del environ[name]
    return inherited is not None


def _settings(
    env: RankEnv,
    size: Size | None,
    family: str,
    devices: Sequence[Device],
    interface: str | None,
    gpus: int,
    folder: Path,
) -> tuple[NetworkVariable, ...]:
    known = size is not None or gpus > 0 or bool(network.usable(devices))
    if size is not None or family:
        files = nccl.topology_of(family, folder)
    else:
        files = nccl.topology_here(folder) if known else nccl.Topology("")
    # The devices of an instance without InfiniBand and GPUs are Ethernet and irrelevant.
    relevant = devices if known else ()
    return (
        *nccl.settings(size, relevant, files, interface=interface, ranks=env.local_world_size),
        *nccl.ucx_settings(size, relevant, files, interface=interface),
    )


def _print_settings(
    env: RankEnv,
    settings: Sequence[NetworkVariable],
    existing: Mapping[str, str],
    size: Size | None,
    devices: Sequence[Device],
) -> None:
    """Print the variables that were added or already set, and known problems. Print nothing if only the interface was
    set."""
    added = [setting for setting in settings if setting.name not in existing]
    different = [setting for setting in settings if existing.get(setting.name, setting.value) != setting.value]
    parts = []
    if added:
        parts.append("set " + "; ".join(f"{setting.name}={setting.value} ({setting.why})" for setting in added))
    if different:
        unchanged = (
            f"{setting.name}={existing[setting.name]} (default {setting.value}: {setting.why})" for setting in different
        )
        parts.append("already set, unchanged: " + "; ".join(unchanged))
    if any(setting.name != SOCKET_INTERFACE for setting in (*added, *different)):
        _note(env, f"{size.name if size else 'detected hardware'}: {'. '.join(parts)}")
    for trap in traps.of_devices(size, devices) if size else ():
        _note(env, f"{trap.found}, expected {trap.expected}; {trap.fix}")


def _note(env: RankEnv, text: str) -> None:
    note(f"instance {env.instance_rank}, {text}")
