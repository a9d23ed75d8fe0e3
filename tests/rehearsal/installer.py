"""The installer of a comparison's environments, which finds every package here already.

The environments are real; what is installed in each is a file that leads back to the packages of
this one.
"""

from __future__ import annotations

import os
import site
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from tests.rehearsal.machine import SLOW

SLOWER = "diffusers==0.42.0"
"""What stands for a release in which `SLOWED` does more in each step."""
SLOWED = "fp16"
SITE = Path(__file__).with_name("site")


def install_nothing(environments: ModuleType) -> None:
    """Let uv make environments, and lead them here for their packages."""
    uv: Callable[..., str] = environments.uv

    def call(*arguments: str) -> str:
        if arguments[0] == "venv":
            return uv(*arguments)
        if arguments[:2] == ("pip", "compile"):
            asked, lock = (Path(arguments[at]) for at in (-5, -1))
            lock.write_text(asked.read_text(encoding="utf-8"), encoding="utf-8")
            return ""
        lock = Path(arguments[arguments.index("--with-requirements") + 1])
        lines = [f"import site; site.addsitedir({folder!r})" for folder in site.getsitepackages()]
        if SLOWER in lock.read_text(encoding="utf-8"):
            lines.append(f"import os; os.environ[{SLOW!r}] = {SLOWED!r}")
        text = os.linesep.join([*lines, str(SITE), ""])
        (lock.parent / "rehearsal.pth").write_text(text, encoding="utf-8")
        return str(lock.parent)

    environments.uv = call  # type: ignore[attr-defined]
