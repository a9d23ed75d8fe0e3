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
    uv: Callable[..., None] = environments.uv

    def call(*arguments: str) -> None:
        if arguments[:2] != ("pip", "install"):
            uv(*arguments)
            return
        python = Path(arguments[arguments.index("--python") + 1])
        lines = [f"import site; site.addsitedir({folder!r})" for folder in site.getsitepackages()]
        if SLOWER in arguments:
            lines.append(f"import os; os.environ[{SLOW!r}] = {SLOWED!r}")
        (folder,) = python.parent.parent.glob("lib/*/site-packages")
        text = os.linesep.join([*lines, str(SITE), ""])
        (folder / "rehearsal.pth").write_text(text, encoding="utf-8")

    environments.uv = call  # type: ignore[attr-defined]
