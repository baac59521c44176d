"""A client of the Debug Adapter Protocol, as small as a test needs."""

import json
import socket
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0


class Client:
    """A client that attaches as VS Code does. breakpoints: lines, by file as the client sees it"""

    def __init__(self, port: int, breakpoints: dict[str, list[int]], local_root: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._stream = self._socket.makefile("rb")
        self._sent = 0
        self._events: list[dict[str, Any]] = []
        self.request("initialize", adapterID="python", pathFormat="path")
        mappings = [{"localRoot": local_root, "remoteRoot": "."}]
        self._send("attach", {"justMyCode": False, "pathMappings": mappings})
        self.event("initialized")
        for file, lines in breakpoints.items():
            self.request("setBreakpoints", source={"path": file}, breakpoints=[{"line": line} for line in lines])
        self.request("configurationDone")

    def request(self, command: str, **arguments: Any) -> Any:
        """Send a request, and return the body of its response."""
        number = self._send(command, arguments)
        response = self._until(lambda each: each["type"] == "response" and each["request_seq"] == number)
        assert response["success"], response
        return response.get("body")

    def event(self, name: str) -> Any:
        """Wait for an event, and return its body."""
        for event in self._events:
            if event["event"] == name:
                self._events.remove(event)
                return event.get("body")
        return self._until(lambda each: each["type"] == "event" and each["event"] == name).get("body")

    def where(self, thread: int) -> tuple[str, int]:
        """Return the file and the line at which a thread is stopped."""
        self.frame = self.request("stackTrace", threadId=thread)["stackFrames"][0]
        return self.frame["source"]["path"], self.frame["line"]

    def value(self, expression: str) -> str:
        """Return the value of an expression where `where` was."""
        return str(self.request("evaluate", expression=expression, frameId=self.frame["id"])["result"])

    def close(self) -> None:
        self._socket.close()

    def _send(self, command: str, arguments: dict[str, Any]) -> int:
        self._sent += 1
        body = json.dumps({"seq": self._sent, "type": "request", "command": command, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._sent

    def _until(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            length = 0
            while line := self._stream.readline().strip():
                length = int(line.split(b":")[1])
            assert length, "the debugger has closed the connection"
            message: dict[str, Any] = json.loads(self._stream.read(length))
            if matches(message):
                return message
            if message["type"] == "event":
                self._events.append(message)
