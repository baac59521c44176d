"""The tools as an agent uses them, through the SDK's own client."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from allranks.cli.commands.why import explanations
from allranks.history import locks, stored
from allranks.history.records import Status, Verdict
from allranks.history.store import Store
from allranks.workspace import Workspace
from allranks_command import PATIENCE, environment, started, words, write, write_job
from allranks_mcp.server import make_server
from allranks_mcp.tools import Tools
from run_records import make_ranks, make_run, make_step

TOKEN = "hf_" + "Q8vN2mXr5TzLkW7cYbJ4dGpSfHaE9uRtVn"
FAILING = 'echo "loading with token={token}" && echo "no such column: age" >&2 && exit 3'


def text(answer: Any) -> str:
    return str(answer.content[0].text)


def session(server: Any, talk: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with Client(server) as client:
            await talk(client)

    asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a job, beside a file and a folder with logs that are not in it."""
    write_job(tmp_path, "echo hello", "outside.yml")
    write(tmp_path, "logs/user_logs/std_log_process_0.txt", "ValueError: no data\n")
    write_job(tmp_path / "project", FAILING.format(token=TOKEN))
    (tmp_path / "project/link.yml").symlink_to(tmp_path / "outside.yml")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def tools(project: Path, *, allows_run: bool = False) -> Any:
    return make_server(Tools(Workspace.at(project / ".allranks"), allows_run=allows_run))


@pytest.mark.slow
def test_a_session_over_standard_input_and_output(project: Path) -> None:
    write(project, "loud.py", "import os\nprint('{}')\nos.system('echo loud')\nos._exit(7)")
    write(project, "broken.py", "def f(:\n")
    write_job(project, "sleep 600", "long.yml")

    async def talk(client: Client) -> None:
        files = ("job.yml", "broken.py", "loud.py")
        answers = await asyncio.gather(*(client.call_tool("check", {"file": file}) for file in files))
        checked, broken, loud = answers
        assert checked.structured_content == {"ok": True, "problems": [], "total": 0}
        assert not broken.structured_content["ok"]
        assert "broken.py" in broken.structured_content["problems"][0]["where"]
        assert loud.is_error
        assert "loud.py: the process that read it ended with exit code 7" in text(loud)
        ran = (await client.call_tool("run", {"file": "job.yml"})).structured_content
        assert (ran["status"], ran["steps"]) == ("Failed", {"job": "Failed"})
        (why,) = (await client.call_tool("why", {"run": ran["run"]})).structured_content["result"]
        assert (why["exit_code"], why["tail"][-1]) == (3, "no such column: age")
        logs = await client.call_tool("logs", {"lines": 1, "first": 1})
        assert logs.structured_content["lines"] == [f"loading with token={'*' * len(TOKEN)}"]
        going = await client.call_tool("run", {"file": "long.yml", "wait": 0})
        assert going.structured_content["status"] != "Failed"

    command, *arguments = words("mcp", "--allow-run")
    session(StdioServerParameters(command=command, args=arguments, cwd=project, env=environment()), talk)
    # The run that was still going on ends with the server.
    workspace = Workspace.at(project / ".allranks")
    last = stored.run(workspace, "latest")
    assert locks.wait(workspace.run_folder(last.id), PATIENCE)
    assert stored.run(workspace, last.id).status is Status.CANCELED


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("check", {"file": "../outside.yml"}),
        ("check", {"file": "link.yml"}),
        ("check", {"file": "../outside.yml:job"}),
        ("plan", {"file": "/etc/hostname"}),
        ("plan", {"file": "job.yml", "inputs": {"data": ".."}}),
        ("plan", {"file": "job.yml", "inputs": {"data": "file:///etc"}}),
        ("run", {"file": "link.yml"}),
        ("why", {"run": "../logs"}),
    ],
)
def test_a_path_outside_of_the_project(project: Path, tool: str, arguments: dict[str, Any]) -> None:
    async def talk(client: Client) -> None:
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error
        assert f": it is outside of the project\n  expected: a path in {project}" in text(answer)

    session(tools(project, allows_run=True), talk)
    assert not (project / ".allranks").exists()


def test_what_cannot_be_done(project: Path) -> None:
    async def talk(client: Client) -> None:
        for tool, arguments, message in (
            ("run", {"file": "job.yml"}, "run: this server only reads\n  fix: ask the user to start it with"),
            ("why", {"run": "nope"}, "run nope: there is no workspace"),
            ("explain", {"code": "missing-packages"}, "fix: did you mean missing-package?"),
        ):
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error
            assert message in text(answer)

    session(tools(project), talk)
    assert not (project / ".allranks").exists()


def test_what_is_recorded(project: Path) -> None:
    place = Workspace(project / ".allranks")
    place.make()
    ranks = make_ranks(1, 1)
    ranks[0].log = str(write(project, "log", "".join(f"{number}% \r{number + 1}%\n" for number in range(300))))
    verdict = Verdict("train", f"ValueError: no access with {TOKEN}", rank=0, code="missing-package")
    step = make_step("train", status=Status.FAILED, verdict=verdict, ranks=ranks)
    with Store(place.database) as store:
        store.add_run(make_run(step, status=Status.FAILED), "")

    async def talk(client: Client) -> None:
        (run,) = (await client.call_tool("runs", {})).structured_content["result"]
        assert (run["run"], run["status"], run["seconds"]) == ("calm_otter", "Failed", 60.0)
        (why,) = (await client.call_tool("why", {})).structured_content["result"]
        assert (why["reason"], why["code"]) == ("ValueError: no access with ***", "missing-package")
        page = (await client.call_tool("logs", {"lines": 2})).structured_content
        assert page == {"run": "calm_otter", "first": 299, "total": 300, "lines": ["299%", "300%"]}
        page = (await client.call_tool("logs", {"lines": 1000, "first": 2})).structured_content
        assert (page["lines"][0], len(page["lines"])) == ("2%", 200)
        assert "there is no such step" in text(await client.call_tool("logs", {"step": "evaluate"}))
        assert text(await client.call_tool("explain", {})).split(", ") == list(explanations())

    session(tools(project), talk)


@pytest.mark.slow
def test_http_needs_the_token_and_a_name_of_this_machine(project: Path) -> None:
    with started("mcp", "--http", "0", folder=project) as process:
        assert process.stderr is not None
        address, line = process.stderr.readline().strip(), process.stderr.readline().strip()
        token = line.removeprefix("Authorization: ")

        def status(**headers: str) -> int:
            request = urllib.request.Request(address, b"{}", {"Content-Type": "application/json", **headers})
            with pytest.raises(urllib.error.HTTPError) as error:
                urllib.request.urlopen(request, timeout=PATIENCE)
            error.value.close()
            return error.value.code

        assert status() == 401
        assert status(Authorization="Bearer other") == 401
        assert status(Authorization=token, Host="example.org") == 421
        assert status(Authorization=token, Origin="http://example.org") == 403

        async def talk(client: Client) -> None:
            assert "launch-variable" in text(await client.call_tool("explain", {}))

        session(streamable_http_client(address, http_client=httpx2.AsyncClient(headers={"Authorization": token})), talk)
