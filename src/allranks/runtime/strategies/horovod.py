"""Horovod's DistributedOptimizer: every rank has a replica of the model, and MPI or gloo averages the gradients."""

from __future__ import annotations

import itertools
import os
from typing import Any

import horovod.torch as hvd
import torch
from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts
from horovod.runner.http.http_server import RendezvousServer
from torch import distributed, nn, optim

from allranks.contract import report
from allranks.contract.rank_env import RankEnv
from allranks.contract.world import detect
from allranks.errors import InputError, Problem
from allranks.runtime.strategies.preparation import transform, with_automatic_precision, with_precision
from allranks.runtime.strategies.settings import TrainingSettings
from allranks.runtime.strategies.torch_training import ReplicatedTraining
from allranks.runtime.strategies.training import Schedule, Strategy

_numbers = itertools.count()
"""Numbers of the trainings, the same on every rank. Horovod identifies a gradient by its name, and two models may have
the same names."""


class Horovod(Strategy):
    """Horovod beside torch's process group. Horovod uses its own connections for gradients."""

    name = "horovod"
    unsupported = ("find_unused_parameters", "shard_group_size", "deepspeed_stage", "offload", "deepspeed_config")

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        _initialise()

    def _distribute(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings, schedule: Schedule | None
    ) -> HorovodTraining:
        """Broadcast rank 0's weights from the device, and wrap the optimizer in Horovod's. A collective."""
        settings = with_automatic_precision(settings, self.device)
        model, blocks = transform(model, settings, self.device)
        model = model.to(self.device)
        if settings.compile and not blocks:
            model.compile()
        hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        if optimizer.state:
            # If the state is empty, Horovod creates it with an optimizer step, which decays the weights and counts as a
            # step.
            hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        number = next(_numbers)
        distributed = hvd.DistributedOptimizer(
            optimizer,
            named_parameters=((f"{number}.{name}", parameter) for name, parameter in model.named_parameters()),
            backward_passes_per_step=settings.backward_passes,
        )
        wrapped = with_precision(settings.precision, model, self.device)
        return HorovodTraining(wrapped, model, distributed, settings, schedule, self.device)


class HorovodTraining(ReplicatedTraining):
    """A training with Horovod's optimizer; see `Training`."""

    strategy = "horovod"
    optimizer: Any

    def _update(self) -> bool:
        if self._device.type == "cpu":
            report.arrived()
        if not self._max_grad_norm and self._loss_scale is None:
            return super()._update()
        self.optimizer.synchronize()  # clip and check the averaged gradients, not this rank's
        with self.optimizer.skip_synchronize():
            return super()._update()


def _initialise() -> None:
    """Initialise Horovod if it is not initialised: with MPI under mpirun, else with gloo and a server on rank 0.

    torch's process group must be initialised. A collective.
    """
    if hvd.is_initialized():
        return
    env = detect()
    if env.launcher != "mpi":
        os.environ.update(_gloo(env))
    hvd.init()
    if hvd.size() != env.world_size:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found=f"Horovod counts {hvd.size()} rank{'s' * (hvd.size() > 1)}: it was built for another MPI",
                expected=f"{env.world_size}",
                fix="build Horovod with the Open MPI whose mpirun starts the ranks",
            )
        )


def _gloo(env: RankEnv) -> dict[str, str]:
    """Return the variables that horovodrun would set for a rank (horovod.runner.gloo_run)."""
    port: list[Any] = [None]
    if distributed.get_rank() == 0:
        port = [_start_rendezvous_server(env)]
    distributed.broadcast_object_list(port, src=0)
    return {
        "HOROVOD_RANK": str(env.rank),
        "HOROVOD_SIZE": str(env.world_size),
        "HOROVOD_LOCAL_RANK": str(env.local_rank),
        "HOROVOD_LOCAL_SIZE": str(env.local_world_size),
        "HOROVOD_CROSS_RANK": str(env.instance_rank),
        "HOROVOD_CROSS_SIZE": str(env.instance_count),
        "HOROVOD_HOSTNAME": _host(env.instance_rank),
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        "HOROVOD_GLOO_IFACE": os.environ.get("GLOO_SOCKET_IFNAME", ""),
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": env.master_addr or "127.0.0.1",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": str(port[0]),
    }


def _start_rendezvous_server(env: RankEnv) -> int:
    """Start the server through which the ranks exchange their addresses, in a thread. Return its port."""
    hosts = ",".join(f"{_host(instance)}:{env.local_world_size}" for instance in range(env.instance_count))
    server = RendezvousServer(verbose=0)
    port: int = server.start()
    server.init(get_host_assignments(parse_hosts(hosts), env.world_size))
    return port


def _host(instance_rank: int) -> str:
    # Not the hostname: emulated instances share one, and Horovod counts the ranks of a host by its name.
    return f"instance-{instance_rank}"
