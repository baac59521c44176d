"""LightGBM's own network, in which every rank connects to every other one at a free port."""

import ipaddress
import signal
import socket
import threading
from typing import Any

from allranks.runtime.sockets import Ranks

TIMEOUT_MINUTES = 10


def parameters(ranks: Ranks) -> dict[str, Any]:
    """Return LightGBM's parameters of the network, none for one rank. A collective.

    LightGBM finds its own entry in the list of machines by the addresses of its network interfaces and by its port, so
    the entries are addresses instead of names.
    """
    if ranks.world_size == 1:
        return {}
    _receive_signals_in_a_thread()
    # Bound, so that the ranks of an instance get different ports, but not listening: LightGBM tries again where a
    # connection is refused, and fails where one is accepted and then closed.
    with socket.socket() as probe:
        probe.bind(("", 0))
        port = int(probe.getsockname()[1])
        machines = ranks.all_gather(f"{_address(ranks)}:{port}")
    return {
        "machines": ",".join(machines),
        "num_machines": ranks.world_size,
        "local_listen_port": port,
        "time_out": TIMEOUT_MINUTES,
        "pre_partition": True,
    }


def _receive_signals_in_a_thread() -> None:
    """Handle the signal of an eviction in another thread than this one, which trains.

    LightGBM ends with "Interrupted system call" if a signal arrives while it receives. Its sockets have a time-out, and
    Linux does not restart calls of those, whatever the handler's flags are: signal(7).
    """
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _address(ranks: Ranks) -> str:
    # Of the loopback addresses, only this one is an interface's.
    return "127.0.0.1" if ipaddress.ip_address(ranks.address).is_loopback else ranks.address
