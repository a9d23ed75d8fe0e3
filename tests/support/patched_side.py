"""A real side whose denoiser does more: `python -m tests.support.patched_side copy|twice`.

It copies its input, or runs twice. A fresh process imports this module too, and so is patched.
"""

from __future__ import annotations

import sys
from typing import Any

from diffusers import UNet2DConditionModel

from fixtures.commands.compare.side_server import main

forward = UNet2DConditionModel.forward


def copying(self: Any, sample: Any, *arguments: Any, **options: Any) -> Any:
    return forward(self, sample.clone(), *arguments, **options)


def running_twice(self: Any, *arguments: Any, **options: Any) -> Any:
    forward(self, *arguments, **options)
    return forward(self, *arguments, **options)


if __name__ in ("__main__", "__mp_main__"):
    UNet2DConditionModel.forward = {"copy": copying, "twice": running_twice}[sys.argv[1]]
if __name__ == "__main__":
    sys.exit(main())
