"""The program as a process: its streams, its exit codes, what it leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .command import Command

PROGRAM = [sys.executable, "-m", "datafusion_lance.cli"]


def run(*arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "LANCE_LOG"} | more
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_quiet(command: Command) -> None:
    built = run("create-index", command.images, "detections", "-k", "label")
    shown = run("sql", "-t", command.images, "--format", "csv", "SELECT count(*) AS n FROM images")

    assert (built.returncode, built.stdout, built.stderr) == (0, "", "")
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, '"n"\n6\n', "")


def test_an_error_is_one_message(tmp_path: Path) -> None:
    result = run("sql", "-t", tmp_path, "SELECT 1")

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's pipe")
def test_a_reader_that_has_enough() -> None:
    query = "SELECT * FROM generate_series(1, 200000)"
    with subprocess.Popen(
        [*PROGRAM, "sql", "--format", "csv", query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1
