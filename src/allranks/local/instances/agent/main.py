"""The supervisor: one process per run, between the engine and the agents."""

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
from allranks.local.instances.agent.agent import write_event
from allranks.local.instances.agent.agent_process import AgentProcess
from allranks.local.instances.agent.descendants import end_descendants, end_orphans
from allranks.local.instances.agent.isolation import Isolation, find


def main(isolation_class: str) -> None:
    """Execute the engine's commands until stdin ends, then end all processes.

    isolation_class: ``MODULE:CLASS``, the isolation of a kind of instances. If this machine does not support it, the
                     supervisor writes an `unfit` event with the reason and returns.
    """
    # The engine reads events from stdout, so other output must not go there.
    events = os.dup(1)
    os.dup2(2, 1)
    # If the engine has ended, stdin ends too, and nobody needs the events.
    with contextlib.suppress(BrokenPipeError):
        try:
            isolation = find(isolation_class)()
        except OSError as error:
            write_event(events, event="unfit", reason=str(error))
            return
        supervisor = Supervisor(isolation, events)
        try:
            kernel.become_subreaper()
            supervisor.serve()
        finally:
            end_descendants()
            supervisor.remove_temporary()


class Supervisor:
    """Start an agent for each instance of a step, forward signals to it, and report its end.

    When a step starts on an instance, the supervisor forks a spare agent for the next step on it. A chain of steps
    therefore does not wait for namespaces to be created.
    """

    def __init__(self, isolation: Isolation, events: int) -> None:
        self.isolation = isolation
        self.events = events
        self.agents: dict[str, AgentProcess] = {}
        self.spare_agents: dict[int, AgentProcess] = {}
        self.temporary: dict[str, str] = {}
        self.wake_reader, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the engine decides when the run ends

    def serve(self) -> None:
        """Execute commands until the engine closes the pipe or ends."""
        write_event(self.events, event="ready", pid=os.getpid(), time=time.time())
        pending = b""
        while True:
            ready, _, _ = select.select([0, self.wake_reader], [], [])
            if self.wake_reader in ready:
                os.read(self.wake_reader, 4096)
                self._reap()
            if 0 in ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._execute(line)

    def remove_temporary(self) -> None:
        """Remove the temporary folders of the instances that were in use when the engine ended."""
        for folder in self.temporary.values():
            temporary.remove(folder)

    def _execute(self, line: bytes) -> None:
        command = json.loads(line)
        if command["command"] == "start":
            self._start(command["agent"], command["instance"], line)
        elif command["command"] == "signal" and command["agent"] in self.agents:
            with contextlib.suppress(BrokenPipeError):  # its instance has just ended
                self.agents[command["agent"]].signal(command["number"])

    def _start(self, name: str, instance: dict[str, Any], command: bytes) -> None:
        index, address = instance["index"], instance["address"]
        agent = self.spare_agents.pop(index, None)
        self.temporary[name] = instance["temporary"]
        try:
            agent = agent or self._fork(index, address)
            self.agents[name] = agent
            agent.send_start(command)
            self.spare_agents[index] = self._fork(index, address)
        except BrokenPipeError:
            return  # the agent was killed before it began; _reap reports it
        except OSError as error:
            if name in self.agents:
                return  # only the spare agent failed to fork: the next step tries again and reports a failure
            write_event(self.events, event="failed", agent=name, reason=str(error), time=time.time())
            write_event(self.events, event="gone", agent=name, time=time.time())

    def _fork(self, index: int, address: str) -> AgentProcess:
        others = [agent.control for agent in (*self.agents.values(), *self.spare_agents.values())]
        return agent_process.fork(self.isolation, index, address, self.events, [0, *others])

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for index in [index for index, spare in self.spare_agents.items() if spare.pid == pid]:
                self.spare_agents.pop(index).close()
            for name in [name for name, agent in self.agents.items() if agent.pid == pid]:
                self.agents.pop(name).close()
                if status:
                    # The agent was killed. Without a PID namespace, its ranks are now children of this process.
                    end_orphans({agent.pid for agent in (*self.agents.values(), *self.spare_agents.values())})
                write_event(self.events, event="gone", agent=name, time=time.time())
                self.temporary.pop(name)  # the engine has received the event and removes the folder


if __name__ == "__main__":
    main(sys.argv[1])
