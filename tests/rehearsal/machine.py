"""The machine of the rehearsal: its cards, and which processes are on them.

`REHEARSAL` is a folder. A process that uses a card leaves a file there, named by its number among
them; the file says its own process number, the card and the worker of pytest-xdist.

Spoils: `REHEARSAL_SLOW` is the scenario that does more in each step, and `REHEARSAL_HOT` throttles
the cards.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import psutil

FOLDER, SLOW, HOT = ("REHEARSAL", "REHEARSAL_SLOW", "REHEARSAL_HOT")
PROFILE = "h200"
UUIDS = ("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000")
"""Of the cards, as CUDA gives them."""


@dataclass(frozen=True)
class User:
    """A process that has used a card; `number` counts from 0."""

    number: int
    pid: int
    uuid: str
    worker: str


def visible() -> list[str]:
    """The cards that this process may use, as the driver reads `CUDA_VISIBLE_DEVICES`."""
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return list(UUIDS)
    uuids = []
    for name in asked.split(","):
        if not name.strip().isdigit() or int(name) >= len(UUIDS):
            break  # whatever follows is not visible either
        uuids.append(UUIDS[int(name)])
    return uuids


def use(uuid: str) -> int:
    """Say that this process is on a card; its number among all that ever were."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "-")
    for number in itertools.count():
        try:
            with folder().joinpath(f"{number}.user").open("x", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {uuid} {worker}")
        except FileExistsError:
            continue
        return number
    raise AssertionError("there is always a next number")


def users(where: Path | None = None) -> list[User]:
    """Every process that was ever on a card."""
    processes = []
    for path in (where or folder()).glob("*.user"):
        words = path.read_text(encoding="utf-8").split()
        if len(words) == 3:  # else it is being written
            processes.append(User(int(path.stem), int(words[0]), words[1], words[2]))
    return sorted(processes, key=lambda user: user.number)


def processes_on(uuid: str) -> list[int]:
    """The processes that are on a card now."""
    return sorted(
        {user.pid for user in users() if user.uuid == uuid and psutil.pid_exists(user.pid)}
    )


def folder() -> Path:
    """Where everything is written that processes tell each other."""
    return Path(os.environ[FOLDER])
