"""A task that is done in this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from typing import Any

from fixtures.worker import tasks
from fixtures.worker.protocol import Task, receive_answer


def answer_to(task: Task) -> Any:
    """What it answers, as the other end of a channel reads it."""
    ours, theirs = Pipe()
    with ThreadPoolExecutor() as pool:  # an answer may be larger than a pipe has room
        pool.submit(tasks.run, task, theirs)
        return receive_answer(ours, "the answer")
