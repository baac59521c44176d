"""torch's fully_shard (FSDP2): each rank has a shard of every parameter, gradient and optimizer state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn, optim
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

from allranks.runtime.settings import TrainingSettings, reject_unsupported
from allranks.runtime.strategies import checkpoint_state, dtensor_states, recomputation
from allranks.runtime.strategies.bfloat16 import with_precision
from allranks.runtime.strategies.torch_training import TorchTraining

_FULL_STATE = StateDictOptions(full_state_dict=True, cpu_offload=True)


@dataclass(frozen=True)
class Fsdp:
    """fully_shard over all ranks: block by block if the settings name blocks, otherwise the model as one unit."""

    device: torch.device

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: TrainingSettings | None = None
    ) -> FsdpTraining:
        """Shard the model, and replace the optimizer's parameters by the sharded ones. A collective."""
        settings = settings or TrainingSettings()
        reject_unsupported("fsdp", settings, "deepspeed_config", "compression")
        blocks = recomputation.modules(model, settings.blocks)
        if settings.activation_checkpointing:
            recomputation.recompute(model, settings.blocks)
        model = model.to(self.device)
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        mesh = init_device_mesh(self.device.type, (distributed.get_world_size(),))
        in_bfloat16 = settings.precision == "bfloat16"
        precision = MixedPrecisionPolicy(
            param_dtype=torch.bfloat16 if in_bfloat16 else None, reduce_dtype=torch.float32 if in_bfloat16 else None
        )
        # On the CPU, offloading has no effect.
        offload = CPUOffloadPolicy() if settings.offload and self.device.type != "cpu" else OffloadPolicy()
        for module in (*blocks, model):
            fully_shard(module, mesh=mesh, mp_policy=precision, offload_policy=offload)
        sharded = dict(model.named_parameters())
        for group in optimizer.param_groups:
            group["params"] = [sharded[names[id(parameter)]] for parameter in group["params"]]
        return FsdpTraining(with_precision(settings.precision, model, self.device), model, optimizer, settings)


class FsdpTraining(TorchTraining):
    """A training under fully_shard; see `Training`."""

    reads_saved_tensors = True

    def weights(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.to_cpu(get_model_state_dict(self._plain, options=_FULL_STATE))

    def state_dict(self) -> dict[str, Any]:
        """See `Training`."""
        return checkpoint_state.pack("fsdp", *dtensor_states.gather(self._plain, self.optimizer))

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """See `Training`."""
        dtensor_states.scatter(self._plain, self.optimizer, *checkpoint_state.unpack("fsdp", state))

    def _set_gradient_sync(self, enabled: bool) -> None:
        assert isinstance(self._plain, FSDPModule)
        self._plain.set_requires_gradient_sync(enabled)
