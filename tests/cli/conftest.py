"""What every test of the command line has."""

from __future__ import annotations

from .command import command

__all__ = ["command"]
