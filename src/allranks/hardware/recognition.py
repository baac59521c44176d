"""Recognise the Azure size of this machine by what Linux lists of its hardware in /sys. No network is used.

Device ids are those of the PCI ID repository (pci-ids.ucw.cz). In a container /sys lists the hardware of the whole
machine, also the GPUs that the container cannot use.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from allranks.hardware import network
from allranks.hardware.network import text
from allranks.hardware.sizes import Size, sizes

GPU_IDS = {
    "10de:102d": ("K80", 12),
    "10de:1db4": ("V100", 16),
    "10de:1db5": ("V100", 32),
    "10de:1eb8": ("T4", 16),
    "10de:20b0": ("A100", 40),
    "10de:20b2": ("A100", 80),
    "10de:20b5": ("A100", 80),
    "10de:2321": ("H100 NVL", 94),
    "10de:2330": ("H100", 80),
    "10de:2335": ("H200", 141),
    "10de:2941": ("GB200", 192),
    "10de:31c2": ("GB300", 288),
    "10de:31c3": ("GB300", 288),
    "1002:74a1": ("MI300X", 192),
    "1002:74b5": ("MI300X", 192),
}
"""GPU and GB of its memory, as in the table of sizes, by vendor and device."""

# Display controllers (VGA, 3D) and processing accelerators. NVSwitches are bridges with other ids.
_GPU_CLASSES = ("0x03", "0x12")


@dataclass(frozen=True)
class Recognised:
    """The sizes of the table that have this hardware.

    sizes:  all that match; several if /sys does not distinguish them
    family: the family of NCCL's topology files, if all of them agree; else ""
    """

    sizes: tuple[Size, ...]
    family: str

    @property
    def size(self) -> Size | None:
        """The size, if there is only one that matches."""
        return self.sizes[0] if len(self.sizes) == 1 else None


NOTHING = Recognised((), "")
"""The result for a machine that is not an Azure size with GPUs."""


def recognise(root: Path = Path("/")) -> Recognised:
    """Return the sizes with the GPUs that root/sys lists, their number and memory, and as many InfiniBand ports, active
    or not. Unreadable files count as missing.

    A machine with several models of GPU, or with numbers that no size has, is not recognised. The number of CPUs
    distinguishes sizes that are otherwise equal, such as those with one T4.
    """
    models = Counter(_gpus(root / "sys/bus/pci/devices"))
    if len(models) != 1:
        return NOTHING
    ((model, memory), count) = next(iter(models.items()))
    ports = sum(device.is_infiniband for device in network.devices(root / "sys/class/infiniband"))
    # /sys lists InfiniBand in a container without access to it, but not on a host whose driver has failed.
    matches = tuple(
        size
        for size in sizes()
        if (size.gpu, size.gpu_memory_gb, size.gpus) == (model, memory, count)
        and (ports > 0 if size.infiniband_ports is None else ports == size.infiniband_ports)
    )
    if len(matches) > 1:
        cpus = len(list(root.glob("sys/devices/system/cpu/cpu[0-9]*")))
        matches = tuple(size for size in matches if size.vcpus == cpus) or matches
    families = {size.topology for size in matches}
    return Recognised(matches, families.pop() if len(families) == 1 else "")


def _gpus(folder: Path) -> list[tuple[str, int]]:
    """Return model and GB of memory of the GPUs whose ids are known."""
    found = []
    for device in sorted(folder.glob("*")):
        if text(device / "class").startswith(_GPU_CLASSES):
            vendor, model = (text(device / name).lower().removeprefix("0x") for name in ("vendor", "device"))
            key = f"{vendor}:{model}"
            if key in GPU_IDS:
                found.append(GPU_IDS[key])
    return found
