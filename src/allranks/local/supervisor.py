"""The supervisor: one process per run, between the engine and the agents.

It and the agents import the standard library only, so that they start in milliseconds:

    engine -> supervisor (one per run) -> agent (one per instance of a step) -> shell -> rank
                    -> fork server (one per environment and modules) -> agent -> shell
                                                                              -> rank

A fork server has imported the ranks' modules. Its agents fork the ranks for the shells, and the ranks need not import
them. All other agents are forked from the supervisor, and their shells start new processes.

The engine writes commands to the supervisor's stdin and reads events from its stdout, one JSON object per line. When
stdin ends, the engine has exited or was killed: the supervisor then ends every agent. An agent whose supervisor ends
kills its ranks.
"""

import contextlib
import json
import os
import select
import signal
import time
from typing import Any

from allranks.local.forkserver.client import ForkServer, ForkServers
from allranks.local.instances import kernel, processes, temporary
from allranks.local.instances.agent import AgentProcess, ended_children, wake_on_exit
from allranks.local.instances.instance import Isolation, find
from allranks.local.instances.process_log import ProcessLog, describe_exit
from allranks.local.instances.processes import end_descendants, end_orphans, write_event

STUCK_SECONDS = 1.0
"""Seconds for an agent to kill its programs. Then it is killed itself, because it may be stopped."""


def main(isolation_class: str, log_file: str = "", offline: str = "") -> None:
    """Execute the engine's commands until stdin ends, then end all processes.

    isolation_class: ``MODULE:CLASS``, the isolation of a kind of instances. If this machine does not support it, the
                     supervisor writes an `unfit` event with the reason and returns.
    log_file:        the engine's log; "" for none
    offline:         if not "", instances reach only each other
    """
    # The engine reads events from stdout, so other output must not go there.
    events = os.dup(1)
    os.dup2(2, 1)
    # If the engine has ended, stdin ends too, and the events are no longer needed.
    with contextlib.suppress(BrokenPipeError):
        try:
            isolation = find(isolation_class)(online=not offline)
        except OSError as error:
            write_event(events, event="unfit", reason=str(error))
            return
        log = ProcessLog("supervisor", log_file)
        supervisor = Supervisor(isolation, isolation_class, events, log)
        reason = "an error of its own"
        try:
            kernel.become_subreaper()
            log.write("supervisor started", isolation=isolation_class)
            supervisor.serve()
            reason = "the engine closed the connection or was killed"
        except BrokenPipeError:
            reason = "the engine was killed"
            raise
        finally:
            end_descendants()
            for folder in supervisor.temporary.values():  # in use when the engine ended
                temporary.remove(folder)
            log.write("supervisor ended", reason=reason)


class Supervisor:
    """Start an agent for each instance of a step, forward signals to it, and report its end if it was killed."""

    def __init__(self, isolation: Isolation, isolation_class: str, events: int, log: ProcessLog) -> None:
        self.isolation = isolation
        self.events = events
        self.log = log
        self.fork_servers = ForkServers(isolation_class, log)
        self.agents: dict[str, AgentProcess] = {}
        self.temporary: dict[int, str] = {}
        self.servers: set[int] = set()
        self.ending: dict[str, float] = {}
        self.injectors: dict[str, dict[str, Any]] = {}
        self.wake_reader = wake_on_exit()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the engine decides when the run ends

    def serve(self) -> None:
        """Execute commands until the engine closes the pipe or ends."""
        write_event(self.events, event="ready", pid=os.getpid(), time=time.time())
        pending = b""
        while True:
            fork_servers = {fork_server.connection.fileno(): fork_server for fork_server in self.fork_servers.alive()}
            ready, _, _ = select.select([0, self.wake_reader, *fork_servers], [], [], self._kill_stuck())
            if self.wake_reader in ready:
                os.read(self.wake_reader, 4096)
                for pid, status, _ in ended_children():
                    self._forget(pid, status)
            for descriptor, fork_server in fork_servers.items():
                if descriptor in ready:
                    self._receive(fork_server)
            if 0 in ready:
                chunk = os.read(0, 1 << 16)
                if not chunk:
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._execute(line)

    def _execute(self, line: bytes) -> None:
        command = json.loads(line)
        if command["command"] == "start":
            self._start(command["agent"], command["instance"], command.get("fork_server"), line)
        elif command["command"] == "prepare":
            self.fork_servers.get(command["fork_server"])
        elif command["command"] == "serve":
            self._serve(command["program"])
        elif command["command"] == "inject":
            self._inject(command["agent"], command["index"], command["file"], command["fault"])
        elif command["command"] == "signal" and command["agent"] in self.agents:
            if command["number"] == signal.SIGKILL:
                self.ending.setdefault(command["agent"], time.monotonic() + STUCK_SECONDS)
            with contextlib.suppress(BrokenPipeError):  # its instance has just ended
                self.agents[command["agent"]].signal(command["number"])

    def _inject(self, name: str, index: int, path: str, fault: dict[str, Any]) -> None:
        self.log.write("fault injected", agent=name, **fault)
        agent = self.agents.get(name)
        try:
            if path not in self.injectors:
                self.injectors[path] = {"__name__": path}
                with open(path, "rb") as file:
                    exec(compile(file.read(), path, "exec"), self.injectors[path])
            self.injectors[path]["inject"](index, agent.pid if agent else 0, **fault)
        except Exception as error:  # of a package
            reason = f"the fault {fault['kind']} was not injected: {error}"
            write_event(self.events, event="failed", agent=name, reason=reason, time=time.time())
        write_event(self.events, event="injected")

    def _serve(self, program: dict[str, Any]) -> None:
        """Start a server with a listening socket, and report its address. Its last arguments are the descriptor of the
        socket and the id of this process, with which it must end."""
        try:
            listener = self.isolation.listen()
        except OSError as error:
            write_event(self.events, event="serving", reason=str(error))
            return
        with listener:
            listener.set_inheritable(True)
            arguments = [*program["arguments"], str(listener.fileno()), str(os.getpid())]
            pid = processes.start({**program, "arguments": arguments})
            host, port = listener.getsockname()
        self.servers.add(pid)
        self.log.write("server started", program=program["name"], started=pid, address=f"{host}:{port}")
        write_event(self.events, event="serving", host=host, port=port)

    def _start(self, name: str, instance: dict[str, Any], spec: dict[str, Any] | None, command: bytes) -> None:
        """Fork the agent of an instance, from a fork server when that is ready, or now from this process if the
        fork server cannot be asked."""
        index = instance["index"]
        fork_server = self.fork_servers.get(spec) if spec else None
        self.temporary[index] = instance["temporary"]
        agent = self.agents[name] = AgentProcess(name, index, instance["address"], command)
        if fork_server is not None:
            with contextlib.suppress(OSError):
                fork_server.fork(agent, self.events, self.isolation.connect(index, agent.address))
                return
        self._fork_here(agent)

    def _fork_here(self, agent: AgentProcess) -> None:
        """Fork an agent from this process, and report it."""
        others = [
            descriptor for other in self.agents.values() if other is not agent for descriptor in other.descriptors()
        ]
        fork_servers = [fork_server.connection.fileno() for fork_server in self.fork_servers.alive()]
        try:
            isolation = self.isolation.agent(self.isolation.connect(agent.index, agent.address))
            pid = agent.fork(isolation, self.events, [0, *others, *fork_servers], self.log)
        except OSError as error:
            agent.close()
            del self.agents[agent.name]
            self.log.write("agent failed to start", "error", agent=agent.name, reason=str(error))
            write_event(self.events, event="failed", agent=agent.name, reason=str(error), time=time.time())
            write_event(self.events, event="gone", agent=agent.name, time=time.time())
        else:
            self._report_fork(agent, pid)

    def _report_fork(self, agent: AgentProcess, pid: int) -> None:
        """Send an agent that has been forked its command, and report it: from now on it is expected to start its
        programs."""
        with contextlib.suppress(BrokenPipeError):  # it was killed before it began; its end is reported
            agent.forked(pid)
        self.log.write("agent started", agent=agent.name, started=pid, instance=agent.index)
        write_event(self.events, event="forked", agent=agent.name, time=time.time())

    def _receive(self, fork_server: ForkServer) -> None:
        """Execute a message of a fork server. Fork the agents that it cannot fork from this process."""
        forked = fork_server.forked
        unforkable = fork_server.receive(self._report_fork, self._forget)
        if not fork_server.usable:
            # An agent that it has forked without a report would receive the commands of another.
            self._end_orphans(fork_server.pid)
        for agent in unforkable:
            self._fork_here(agent)
        if not fork_server.usable:
            for pid in forked:
                if not os.path.exists(f"/proc/{pid}"):  # the fork server has reaped it and could not report that
                    self._forget(pid, 1)

    def _kill_stuck(self) -> float | None:
        """Kill the agents that have not ended their programs in time. Return the seconds until the next deadline, or
        None."""
        now = time.monotonic()
        for name, due in list(self.ending.items()):
            agent = self.agents.get(name)
            if agent is None or now >= due:
                del self.ending[name]
            if agent is not None and now >= due and agent.pid:
                self.log.write(
                    "agent killed", "warning", agent=name, killed=agent.pid, reason="it did not end its ranks"
                )
                with contextlib.suppress(ProcessLookupError):
                    os.kill(agent.pid, signal.SIGKILL)
        return max(min(self.ending.values()) - now, 0.0) if self.ending else None

    def _forget(self, pid: int, status: int) -> None:
        """Forget an agent that has ended, and report it if it was killed."""
        how = describe_exit(os.waitstatus_to_exitcode(status))
        agent = next((agent for agent in self.agents.values() if agent.pid == pid), None)
        if agent is None:
            # A server, a fork server, or an orphan of a killed agent.
            self.servers.discard(pid)
            self.log.write("process ended", ended=pid, **how)
            return
        agent.close()
        del self.agents[agent.name]
        self.log.write("agent ended", "warning" if status else "info", agent=agent.name, ended=pid, **how)
        if status:
            # The agent was killed. Without a PID namespace, its ranks are now children of this process.
            self._end_orphans()
            write_event(self.events, event="gone", agent=agent.name, time=time.time())

    def _end_orphans(self, *skipped: int) -> None:
        fork_servers = {fork_server.pid for fork_server in self.fork_servers.alive()}
        end_orphans({*skipped, *(agent.pid for agent in self.agents.values()), *fork_servers, *self.servers})
