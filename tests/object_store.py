"""An S3-compatible server in a process of its own, for tests of tables that are not local."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

_SERVER = Path(__file__).with_name("object_store_server.py")
_BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests that the server has answered: their methods, paths, and the bytes that it sent."""

    method: str
    path: str
    status: int
    nbytes: int

    @property
    def sent(self) -> int:
        return self.nbytes if self.method == "GET" else 0


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A running server with one bucket."""

    endpoint: str

    @property
    def options(self) -> Mapping[str, str]:
        """Lance's storage options for it."""
        return {
            "aws_endpoint": self.endpoint,
            "allow_http": "true",
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
        }

    def uri(self, name: str) -> str:
        """The address of a table."""
        return f"s3://{_BUCKET}/{name}"

    def asked(self) -> list[Asked]:
        """The requests since the last call."""
        with urlopen(f"{self.endpoint}/-/requests") as answer:
            return [Asked(**one) for one in json.load(answer)]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    """A server that ends with the module."""
    # What moto's own imports warn of is not this project's.
    command = [sys.executable, "-W", "ignore", str(_SERVER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            store = ObjectStore(f"http://127.0.0.1:{int(process.stdout.readline())}")
            with urlopen(Request(f"{store.endpoint}/{_BUCKET}", method="PUT")):
                pass
            yield store
        finally:
            process.kill()
