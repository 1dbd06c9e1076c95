"""The command line as a test calls it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from datafusion_lance.cli.main import main

from ..engine.indexed_images import write_images


@dataclass(frozen=True, slots=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Command:
    """Runs commands in this process; `images` is the path of a table."""

    def __init__(self, images: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.images = images
        self._capture = capture

    def __call__(self, *arguments: object) -> Result:
        self._capture.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ending:
            code = int(ending.code or 0)
        captured = self._capture.readouterr()
        return Result(code, captured.out, captured.err)

    def succeed(self, *arguments: object) -> Result:
        result = self(*arguments)
        assert (result.code, result.err) == (0, "")
        return result


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(write_images(tmp_path / "images.lance"), capsys)
