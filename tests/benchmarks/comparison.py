"""How often a comparison errs: `python -m tests.benchmark_comparison --runs 20 --load`.

Compares this environment with itself; with `--slower 3` with a copy of its diffusers whose denoiser
takes 3 % longer. Prints the verdicts, what exact figures differ, and the seconds for one latency.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from importlib import metadata, util
from pathlib import Path

from fixtures.compare.environments import Environments
from fixtures.compare.process import Side
from fixtures.compare.requirements import Requirements
from fixtures.compare.run import Comparing
from fixtures.power.load import load
from fixtures.scenarios import scenarios
from fixtures.settings import Settings

SOUND = [sys.executable, "-m", "fixtures.compare.side"]
SETUP = """
from setuptools import find_packages, setup
setup(name="diffusers", version="{version}", packages=find_packages("src"),
      package_dir={{"": "src"}}, install_requires={needed})
"""
SLOW_DOWN = """

def _slowed(forward, share):
    import time

    def slower(*args, **kwargs):
        start_s = time.thread_time()
        found = forward(*args, **kwargs)
        end_s = time.thread_time()
        while time.thread_time() < end_s + share * (end_s - start_s):
            pass
        return found

    return slower


UNet2DConditionModel.forward = _slowed(UNet2DConditionModel.forward, {share})
"""
DENOISER = Path("models/unets/unet_2d_condition.py")


def slower_copy(folder: Path, percent: float) -> Path:
    """A checkout of the installed diffusers whose UNet takes so much longer, in CPU time."""
    spec = util.find_spec("diffusers")
    if spec is None or spec.origin is None:
        raise SystemExit("diffusers is not installed")
    package = folder / "src" / "diffusers"
    shutil.copytree(Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("*.pyc"))
    needed = [one for one in metadata.requires("diffusers") or () if "extra" not in one]
    text = SETUP.format(version=metadata.version("diffusers"), needed=needed)
    (folder / "setup.py").write_text(text)
    with (package / DENOISER).open("a") as file:
        file.write(SLOW_DOWN.replace("{share}", str(percent / 100)))
    return folder


def main() -> None:
    """Run the comparisons and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--load", action="store_true", help="beside a load on every core")
    parser.add_argument("--slower", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--scenario", default="storybook-sdpa")
    options = parser.parse_args()
    workload = options.scenario.rpartition("-")[0]
    found = [one for one in scenarios([workload]) if one.id == options.scenario]
    verdicts: Counter[str] = Counter()
    differ: Counter[str] = Counter()
    took_s: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        head_command = SOUND
        if options.slower:
            copy = slower_copy(folder / "slower", options.slower)
            head_command = Environments().prepare(Requirements.parse([str(copy)])).command
        for number in range(options.runs):
            sides = [
                Side("base", SOUND, Settings(device="cpu"), folder),
                Side("head", head_command, Settings(device="cpu"), folder),
            ]
            with load() if options.load else contextlib.nullcontext():
                try:
                    comparing = Comparing(*sides, show=lambda text: None)
                    comparing.metrics = ("peak_memory", "counters", "pictures")
                    exact = comparing.run(found)
                    start_s = time.monotonic()
                    comparing.metrics = ("latency",)
                    latency = comparing.run(found)
                finally:
                    for side in sides:
                        side.close()
            took_s.append(time.monotonic() - start_s)
            for row in exact.rows:
                differ[row.verdict.metric] += row.base != row.head
            (row,) = latency.rows
            verdicts[row.verdict.outcome.value] += 1
            print(f"{number + 1}: {row.verdict.sentence} ({took_s[-1]:.0f} s)", flush=True)
    print(f"latency: {dict(verdicts)}; exact figures that differ: {dict(+differ) or 'none'}")
    print(f"seconds of a latency: median {statistics.median(took_s):.0f}, most {max(took_s):.0f}")


if __name__ == "__main__":
    main()
