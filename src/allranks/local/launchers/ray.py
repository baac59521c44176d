"""Distribution type ray: a real Ray cluster on the instances, with its head on the first one.

Azure ML does not document which processes run. We conclude from the settings (arguments of `ray start` for the head
node and for worker nodes) that the command runs once, on the head, when all nodes have joined, and that a worker node
runs Ray only."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from allranks.contract.ray import Ray, head
from allranks.local.launchers.launching import Assignment, LaunchedPrograms

RAY = "ray"
PATIENCE = 120
"""Seconds that the head waits for the other nodes."""

OBJECT_STORE = 256 << 20
"""Bytes of an instance's object store. Ray's default is 30 % of the machine's memory, which several instances share
here."""

NO_STATISTICS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_USAGE_STATS_REPORT_URL": "about:blank"}
"""Ray reports its usage statistics, even that they are disabled, unless its address for reports is none
(`_report_disabled_usage_sync` in ray/dashboard/modules/usage_stats/usage_stats_head.py, Ray 2.60)."""

START = """
RAY_ADDRESS= {start} >&2 || exit $?
touch {joined}
""".lstrip()

WAIT = """
for joined in {all_joined}; do
    tries=0
    until [ -e "$joined" ]; do
        tries=$((tries + 1))
        if [ $tries -gt {tries} ]; then
            echo "after {patience} s a Ray node has not joined the cluster: see the logs of the other instances" >&2
            exit 1
        fi
        sleep 0.1
    done
done
exec {command}
"""

SERVE = "exec sleep infinity\n"


def launch(assignment: Assignment) -> LaunchedPrograms:
    """Start a Ray node on each instance. The step ends when the command on the head exits."""
    assignment.folder.mkdir(parents=True, exist_ok=True)
    joined = [str(assignment.folder / f"joined_{number}") for number in range(len(assignment.ranks))]
    programs = []
    for number, rank in enumerate(assignment.ranks):
        script = START.format(start=shlex.join(_start(assignment, number)), joined=shlex.quote(joined[number]))
        if number == 0:
            script += WAIT.format(
                all_joined=shlex.join(joined),
                tries=PATIENCE * 10,
                patience=PATIENCE,
                command=shlex.join(rank.arguments),
            )
        else:
            script += SERVE
        environment = {**NO_STATISTICS, **rank.environment}
        programs.append([replace(rank, arguments=("/bin/sh", "-c", script), environment=environment)])
    return LaunchedPrograms(programs, frozenset({assignment.ranks[0].name}))


def _start(assignment: Assignment, number: int) -> Sequence[str]:
    settings, launch = assignment.launch.distribution, assignment.launch
    assert isinstance(settings, Ray)
    host, _, port = head(settings, launch).rpartition(":")
    environment = assignment.environment[number]
    common = [
        *(RAY, "start", "--disable-usage-stats"),
        *("--node-ip-address", launch.addresses[number]),
        *("--object-store-memory", str(OBJECT_STORE)),
    ]
    if number:
        return [*common, "--address", f"{host}:{port}", *shlex.split(settings.worker_node_additional_args)]
    dashboard = [] if settings.dashboard_port is None else ["--dashboard-port", str(settings.dashboard_port)]
    return [
        *common,
        *("--head", "--port", port, "--include-dashboard", str(bool(settings.include_dashboard)).lower()),
        *dashboard,
        # Without a subfolder: the socket paths in it are already close to the length limit.
        *(("--temp-dir", environment["TMPDIR"]) if "TMPDIR" in environment else ()),
        *shlex.split(settings.head_node_additional_args),
    ]
