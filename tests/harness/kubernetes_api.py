"""As much of Kubernetes' API as Spark's submission asks for in cluster mode; it records all.

No cluster: nothing is scheduled, no image is pulled, no right is asked for. What the driver's pod does is the test's.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.harness.ports import HOST

_POLL_SECONDS = 0.1
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What Kubernetes takes for an object's name: a name of DNS."""
_FAILURE = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


@dataclass(frozen=True)
class Asked:
    """A request, with the path less its query and the body as it came."""

    method: str
    path: str
    body: str


@dataclass
class Pod:
    """A driver's pod.

    :param created: as Spark posted it.
    :param settings: ``spark.properties`` of its config map.
    :param deleted: set when somebody deletes it.
    """

    path: str
    created: Mapping[str, Any]
    settings: str = ""
    deleted: threading.Event = field(default_factory=threading.Event)

    @property
    def name(self) -> str:
        """Of which Airflow hears by Spark's log."""
        return str(self.created["metadata"]["name"])

    @property
    def container(self) -> dict[str, Any]:
        """The one in which Spark's driver runs."""
        return dict(self.created["spec"]["containers"][0])


class KubernetesApi:
    """The server, from ``with`` to the end of its block.

    :param run: what the driver's container does, to its exit code; called once the pod's config map is there, and may
        take as long as it likes. It should end when the pod is deleted.
    """

    def __init__(self, run: Callable[[Pod], int]) -> None:
        self.asked: list[Asked] = []
        self.pods: list[Pod] = []
        self._run = run
        self._objects: dict[str, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer((HOST, 0), self._handler())
        self.url = f"http://{HOST}:{self._server.server_port}"

    def __enter__(self) -> KubernetesApi:
        threading.Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._objects.clear()  # no watch goes on
        for pod in self.pods:
            pod.deleted.set()
        self._server.shutdown()
        self._server.server_close()

    def _make(self, path: str, made: dict[str, Any]) -> dict[str, Any]:
        if made["kind"] == "Pod":
            self.pods.append(Pod(path, made))
        self._objects[path] = {**made, "metadata": {**made["metadata"], "uid": path}, "status": {"phase": "Pending"}}
        if made["kind"] == "ConfigMap":
            # Only the driver's is made by the submission, once its pod is there: the pod waits for it.
            self.pods[-1].settings = made["data"]["spark.properties"]
            threading.Thread(target=self._run_pod, args=(self.pods[-1],), daemon=True).start()
        return self._objects[path]

    def _run_pod(self, pod: Pod) -> None:
        self._set_status(pod, "Running", {"running": {}})
        exit_code = 1  # also where the test's own code raises
        try:
            exit_code = self._run(pod)
        finally:
            self._set_status(pod, "Failed" if exit_code else "Succeeded", {"terminated": {"exitCode": exit_code}})

    def _set_status(self, pod: Pod, phase: str, state: Mapping[str, Any]) -> None:
        if pod.path in self._objects:
            container = {"name": pod.container["name"], "image": pod.container["image"], "state": state}
            status = {"phase": phase, "containerStatuses": [container]}
            self._objects[pod.path] = {**self._objects[pod.path], "status": status}

    def _events(self, path: str) -> Iterator[dict[str, Any]]:
        """What a watch of one object tells, up to its deletion."""
        told = None
        while (now := self._objects.get(path)) is not None:
            if now != told:
                yield {"type": "MODIFIED", "object": now}
            told = now
            time.sleep(_POLL_SECONDS)
        yield {"type": "DELETED", "object": told}

    def _answer(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        if asked.method in ("POST", "PATCH"):
            made = json.loads(asked.body)
            if not _NAME.fullmatch(made["metadata"]["name"]):
                return 422, {**_FAILURE, "reason": "Invalid", "code": 422, "message": "metadata.name: Invalid value"}
            path = asked.path if asked.method == "PATCH" else f"{asked.path}/{made['metadata']['name']}"
            return 201, self._make(path, made)
        if asked.path not in self._objects:
            return 404, {**_FAILURE, "reason": "NotFound", "code": 404}
        if asked.method == "DELETE":
            for pod in [pod for pod in self.pods if pod.path == asked.path]:
                pod.deleted.set()
            return 200, self._objects.pop(asked.path)
        return 200, self._objects[asked.path]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                api.asked.append(asked := Asked(self.command, url.path, body))
                if "Upgrade" in self.headers:
                    # Spark's client asks for a web socket first, and takes a long answer where there are none.
                    self.tell(503, {})
                elif watched := re.search(r"metadata\.name=([^&]*).*&watch=true", unquote(url.query)):
                    self.send_response(200)
                    self.end_headers()
                    for event in api._events(f"{url.path}/{watched[1]}"):
                        self.wfile.write(json.dumps(event).encode() + b"\n")
                else:
                    self.tell(*api._answer(asked))

            do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - names of http.server

            def tell(self, code: int, answer: Mapping[str, Any]) -> None:
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                """Tells nothing: all is recorded."""

        return Handler
