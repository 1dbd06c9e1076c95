"""Which process a build belongs to, and whether that has ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_ENDED: Final = ("Z", "X")
"""Its states in the kernel's words, until somebody asks for how it ended."""


def this_process() -> str:
    """What tells this process from all others of any machine; empty where nothing does.

    That is the machine's start and the namespace that its number is of, both with random or
    unique numbers of the kernel's, its number, and when it began.
    """
    return _identity(os.getpid()) or ""


def has_ended(owner: str) -> bool:
    """Whether the process that `this_process` named `owner` runs no more.

    False wherever this process could not see it: on another machine, in another container, or
    before the machine was last started.
    """
    here = _place()
    *place, process, _ = owner.split(" ") if owner.count(" ") == 3 else ("", "", "")
    if here is None or " ".join(place) != here or not process.isdecimal() or int(process) < 1:
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    if not _state(Path(f"/proc/{process}/stat"))[1]:
        # It is another user's, which some machines hide.
        return False
    return _identity(int(process)) != owner


def is_running(owner: str) -> bool:
    """Whether the process that `this_process` named `owner` is one that this process sees run."""
    process = owner.split(" ")[2] if owner.count(" ") == 3 else ""
    return process.isdecimal() and _identity(int(process)) == owner


def _identity(process: int) -> str | None:
    """What `this_process` says of another one; None of one that does nothing any more."""
    place, (_, began) = _place(), _state(Path(f"/proc/{process}/stat"))
    if place is None or not began:
        return None
    # One that was killed may have threads that are not through with it yet.
    threads = (_state(path)[0] for path in Path(f"/proc/{process}/task").glob("*/stat"))
    if all(state in ("", *_ENDED) for state in threads):
        return None
    return f"{place} {process} {began}"


def _state(path: Path) -> tuple[str, str]:
    """The letter of the state of a process or thread, and when it began; empty if it is gone."""
    try:
        # The name of the program, in parentheses, may have any characters in it.
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]


def _place() -> str | None:
    """The kernel's run and the namespace of process numbers; None where there are none."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            # What is in /proc is of another namespace.
            return None
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None
