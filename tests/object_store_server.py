"""An S3-compatible server that tells what it was asked for: `python object_store_server.py`.

Prints its port. `GET /-/requests` gives the requests since the last time as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_REQUESTS = "/-/requests"


class Counting:
    """moto's application, with a list of the requests that it has answered."""

    def __init__(self) -> None:
        self._application: Any = DomainDispatcherApplication(create_backend_app)
        self._answered: list[dict[str, Any]] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _REQUESTS:
            told, self._answered = self._answered, []
            body = json.dumps(told).encode()
            start_response("200 OK", [("Content-Length", str(len(body)))])
            return [body]

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            sizes = [value for name, value in headers if name.lower() == "content-length"]
            self._answered.append(
                {
                    "method": environ["REQUEST_METHOD"],
                    "path": environ["PATH_INFO"],
                    "status": int(status.split()[0]),
                    "nbytes": int(sizes[0]) if sizes else 0,
                }
            )
            return start_response(status, headers, *rest)

        return self._application(environ, start)


class _Silent(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, Counting(), threaded=True, request_handler=_Silent)
    print(server.server_port, flush=True)
    server.serve_forever()
