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

from allranks.local.supervision import kernel
from allranks.local.supervision.descendants import end_descendants
from allranks.local.supervision.keeper import keep, tell
from allranks.local.supervision.machines import MACHINES, Machines


def main(kind: str) -> None:
    """Serves the engine until its stdin ends, then ends everything.

    kind: where instances live, a key of MACHINES. What it cannot offer on this machine is told as an `unfit` event with
    the reason.
    """
    # stdout is the engine's: nothing but events may go there.
    events = os.dup(1)
    os.dup2(2, 1)
    try:
        machines = MACHINES[kind]()
    except OSError as error:
        tell(events, event="unfit", reason=str(error))
        return
    try:
        kernel.become_subreaper()
        Supervisor(machines, events).serve()
    finally:
        end_descendants()


class Supervisor:
    """Forks a keeper for each instance of a step, passes signals on, and tells when a keeper is gone."""

    def __init__(self, machines: Machines, events: int) -> None:
        self.machines = machines
        self.events = events
        self.keepers: dict[int, str] = {}
        self.controls: dict[str, int] = {}
        self.wake, wakened = os.pipe()
        os.set_blocking(wakened, False)
        signal.set_wakeup_fd(wakened)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the engine decides when its run ends

    def serve(self) -> None:
        """Obeys commands until the engine closes the pipe or dies."""
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
                    self._obey(json.loads(line))

    def _obey(self, command: dict[str, Any]) -> None:
        if command["command"] == "start":
            self._start(command)
        elif command["command"] == "signal" and command["keeper"] in self.controls:
            with contextlib.suppress(BrokenPipeError):  # its instance has just ended
                os.write(self.controls[command["keeper"]], bytes([command["number"]]))

    def _start(self, command: dict[str, Any]) -> None:
        name = command["keeper"]
        listen, control = os.pipe()
        try:
            pid = self.machines.fork(command["machine"])
        except OSError as error:
            os.close(listen)
            os.close(control)
            tell(self.events, event="failed", keeper=name, reason=str(error), time=time.time())
            tell(self.events, event="gone", keeper=name, time=time.time())
            return
        if pid:
            os.close(listen)
            self.keepers[pid] = name
            self.controls[name] = control
            return
        status = 0
        try:
            # Another keeper's pipe held open here would hide the supervisor's death from it; commands are not for a
            # keeper either.
            for descriptor in (0, control, *self.controls.values()):
                os.close(descriptor)
            self.machines.enter(command["machine"])
            keep(name, command["programs"], listen, self.events)
        except OSError as error:
            tell(self.events, event="failed", keeper=name, reason=str(error), time=time.time())
            status = 1
        finally:
            os._exit(status)

    def _reap(self) -> None:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            name = self.keepers.pop(pid, None)
            if name is not None:
                os.close(self.controls.pop(name))
                tell(self.events, event="gone", keeper=name, time=time.time())


if __name__ == "__main__":
    main(sys.argv[1])
