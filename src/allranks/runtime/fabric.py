"""NCCL's and UCX's settings that follow from the hardware, in a rank's environment before its process group starts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.contract import own_variables, variables
from allranks.contract.rank_env import RankEnv

if TYPE_CHECKING:
    from allranks.hardware.infiniband import Device
    from allranks.hardware.setting import Setting
    from allranks.hardware.sizes import Size

SET_HERE = "ALLRANKS_FABRIC"
"""What was set here, as JSON, for the processes that inherit it: on another instance, or with another number of ranks,
other values are right."""

INTERFACE = "NCCL_SOCKET_IFNAME"


@dataclass(frozen=True)
class Places:
    """Where an instance shows what it has: its RDMA devices, Azure's files for NCCL, NCCL's own settings."""

    sysfs: Path = Path("/sys/class/infiniband")
    topology: Path = Path("/opt/microsoft")
    nccl_conf: Path = Path("/etc/nccl.conf")


HERE = Places()


def set_up(
    env: RankEnv,
    interface: str | None,
    *,
    gpus: int,
    environ: MutableMapping[str, str] = os.environ,
    places: Places = HERE,
) -> None:
    """Set what this instance needs and nobody has set, and say what and why, once per instance.

    interface: that leads to rank 0; None leaves the choice to the libraries
    gpus:      that this process sees

    The size is the one that ALLRANKS_SIZE names. Without it what is found on the instance speaks alone: one without
    InfiniBand and without GPUs gets the interface and nothing else, and no word is said. What a user has set, or NCCL's
    own files set, stays, and what is said names it. ALLRANKS_SIZE=none leaves all but the interface alone.
    """
    told = _take_back(environ)
    name = variables.text(environ, own_variables.SIZE)
    found = bool(name) or places.sysfs.is_dir() or places.topology.is_dir()
    if not found or name == own_variables.NO_SIZE:
        if interface is not None:
            environ.setdefault(INTERFACE, f"={interface}")
        return
    # Not at the top: most machines need none of it.
    from allranks.hardware import infiniband, nccl_conf, sizes

    size = sizes.known(name) if name else None
    devices = infiniband.devices(places.sysfs)
    settings = _settings(env, size, devices, interface, gpus, places)
    theirs = {**nccl_conf.read(environ, places.nccl_conf), **environ}
    made = {setting.name: setting.value for setting in settings if setting.name not in theirs}
    environ.update(made)
    if name or made.keys() - {INTERFACE}:
        environ[SET_HERE] = json.dumps(made)
    if env.local_rank == 0 and not told:
        _tell(env, settings, theirs, size, devices)
        if name and size is None:
            _note(env, f"{own_variables.SIZE}={name} is no size that is known here: see `allranks sizes --retired`")


def _take_back(environ: MutableMapping[str, str]) -> bool:
    """Unset what was set here before, but for what somebody has changed since. Whether there was anything."""
    before = environ.pop(SET_HERE, None)
    for name, value in json.loads(before or "{}").items():
        if environ.get(name) == value:
            del environ[name]
    return before is not None


def _settings(
    env: RankEnv, size: Size | None, devices: Sequence[Device], interface: str | None, gpus: int, places: Places
) -> tuple[Setting, ...]:
    from allranks.hardware import infiniband, nccl, topology, ucx

    known = size is not None or gpus > 0 or bool(infiniband.usable(devices))
    if size is not None:
        files = topology.of_family(size.topology, places.topology)
    else:
        files = topology.here(places.topology) if known else topology.Topology("")
    # Of a machine without InfiniBand and GPUs its devices say nothing: they are Ethernet.
    found = devices if known else ()
    return (
        *nccl.settings(size, found, files, interface=interface, ranks=env.local_world_size),
        *ucx.settings(size, found, files, interface=interface),
    )


def _tell(
    env: RankEnv,
    settings: Sequence[Setting],
    theirs: Mapping[str, str],
    size: Size | None,
    devices: Sequence[Device],
) -> None:
    """Say what was set, what was kept, and what is missing; nothing where nothing but the interface was set."""
    from allranks.hardware import traps

    made = [setting for setting in settings if setting.name not in theirs]
    kept = [setting for setting in settings if theirs.get(setting.name, setting.value) != setting.value]
    parts = []
    if made:
        parts.append("set " + "; ".join(f"{one.name}={one.value} ({one.why})" for one in made))
    if kept:
        as_it_was = (f"{one.name}={theirs[one.name]} (it would be {one.value}: {one.why})" for one in kept)
        parts.append("kept as it was set: " + "; ".join(as_it_was))
    if any(setting.name != INTERFACE for setting in (*made, *kept)):
        _note(env, f"{size.name if size else 'by what was found'}: {'. '.join(parts)}")
    for trap in traps.of_devices(size, devices) if size else ():
        _note(env, f"{trap.found}, expected {trap.expected}; {trap.fix}")


def _note(env: RankEnv, text: str) -> None:
    from allranks.runtime.notes import note

    note(f"instance {env.instance_rank}, {text}")
