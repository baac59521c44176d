"""The supervisor: one process a run, between the engine and everything that the run starts."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import Any

from allranks.local.instances import kernel, temporary
from allranks.local.instances.agent import agent_process
from allranks.local.instances.agent.agent import tell
from allranks.local.instances.agent.agent_process import KeeperProcess
from allranks.local.instances.agent.descendants import end_descendants, end_orphans
from allranks.local.instances.agent.machines import MACHINES, Machines


def main(kind: str) -> None:
    """Serve the engine until its stdin ends, then ends everything.

    kind: where instances live, a key of MACHINES. What it cannot offer on this machine is told as an `unfit` event with
    the reason.
    """
    # stdout is the engine's: nothing but events may go there.
    events = os.dup(1)
    os.dup2(2, 1)
    # Whoever is gone needs no events: that the engine is, is also the end of stdin, so there is nothing to report.
    with contextlib.suppress(BrokenPipeError):
        try:
            machines = MACHINES[kind]()
        except OSError as error:
            tell(events, event="unfit", reason=str(error))
            return
        supervisor = Supervisor(machines, events)
        try:
            kernel.become_subreaper()
            supervisor.serve()
        finally:
            end_descendants()
            supervisor.remove_temporary()


class Supervisor:
    """Hands each instance of a step to a keeper, passes signals on, and tells when a keeper is gone.

    Once a step has taken a machine, the next keeper of that machine gets ready at once: a chain of steps does not wait
    for its namespaces.
    """

    def __init__(self, machines: Machines, events: int) -> None:
        self.machines = machines
        self.events = events
        self.keepers: dict[str, KeeperProcess] = {}
        self.spares: dict[int, KeeperProcess] = {}
        self.temporary: dict[str, str] = {}
        self.wake, wakened = os.pipe()
        os.set_blocking(wakened, False)
        signal.set_wakeup_fd(wakened)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the engine decides when its run ends

    def serve(self) -> None:
        """Obey commands until the engine closes the pipe or dies."""
        tell(self.events, event="ready", pid=os.getpid(), time=time.time())
        pending = b""
        while True:
            ready, _, _ = select.select([0, self.wake], [], [])
            if self.wake in ready:
                os.read(self.wake, 4096)
                self._reap()
            if 0 in ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._obey(line)

    def remove_temporary(self) -> None:
        """Remove the temporary folders of machines that were in use when the engine ended: it cannot do so itself."""
        for folder in self.temporary.values():
            temporary.remove(folder)

    def _obey(self, line: bytes) -> None:
        command = json.loads(line)
        if command["command"] == "start":
            self._start(command["keeper"], command["machine"], line)
        elif command["command"] == "signal" and command["keeper"] in self.keepers:
            with contextlib.suppress(BrokenPipeError):  # its instance has just ended
                self.keepers[command["keeper"]].signal(command["number"])

    def _start(self, name: str, machine: dict[str, Any], order: bytes) -> None:
        index, address = machine["index"], machine["address"]
        keeper = self.spares.pop(index, None)
        self.temporary[name] = machine["temporary"]
        try:
            keeper = keeper or self._fork(index, address)
            self.keepers[name] = keeper
            keeper.order(order)
            self.spares[index] = self._fork(index, address)
        except BrokenPipeError:
            return  # it was killed before it began, and is reaped like any other
        except OSError as error:
            if name in self.keepers:
                return  # only the spare could not be forked: the next step tries again, and tells of it
            tell(self.events, event="failed", keeper=name, reason=str(error), time=time.time())
            tell(self.events, event="gone", keeper=name, time=time.time())

    def _fork(self, index: int, address: str) -> KeeperProcess:
        others = [keeper.control for keeper in (*self.keepers.values(), *self.spares.values())]
        return agent_process.fork(self.machines, index, address, self.events, [0, *others])

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for index in [index for index, spare in self.spares.items() if spare.pid == pid]:
                self.spares.pop(index).close()
            for name in [name for name, keeper in self.keepers.items() if keeper.pid == pid]:
                self.keepers.pop(name).close()
                if status:
                    # It was killed, and what it kept is this process's own now, where no namespace has ended it.
                    end_orphans({keeper.pid for keeper in (*self.keepers.values(), *self.spares.values())})
                tell(self.events, event="gone", keeper=name, time=time.time())
                self.temporary.pop(name)  # the engine has been told, and removes it


if __name__ == "__main__":
    main(sys.argv[1])
