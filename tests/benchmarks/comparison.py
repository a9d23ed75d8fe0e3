"""How often a comparison errs: `python -m tests.benchmarks.comparison --runs 20 --load`.

Compares two checkouts of the installed diffusers, each in an environment of its own, as a user's
would be; with `--slower 3` the denoiser of head takes 3 % longer. Prints the verdicts, what exact
figures differ, and the seconds for one latency.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from contextlib import closing, nullcontext
from importlib import metadata, util
from pathlib import Path

from fixtures.commands.compare.comparing import Comparing
from fixtures.commands.compare.environments import Environments
from fixtures.commands.compare.remote_side import RemoteSide
from fixtures.commands.compare.requirements import Requirements
from fixtures.scenarios import find_scenario
from fixtures.settings import Settings
from fixtures.studies.power.load import load

EXACT = ("peak_memory", "counts", "images")
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
        output = forward(*args, **kwargs)
        end_s = time.thread_time()
        while time.thread_time() < end_s + share * (end_s - start_s):
            pass
        return output

    return slower


UNet2DConditionModel.forward = _slowed(UNet2DConditionModel.forward, {share})
"""
DENOISER = Path("models/unets/unet_2d_condition.py")


def copied(folder: Path, percent: float = 0.0) -> Path:
    """A checkout of the installed diffusers, its UNet slowed down by so much CPU time."""
    spec = util.find_spec("diffusers")
    if spec is None or spec.origin is None:
        raise SystemExit("diffusers is not installed")
    package = folder / "src" / "diffusers"
    shutil.copytree(Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("*.pyc"))
    needed = [need for need in metadata.requires("diffusers") or () if "extra" not in need]
    text = SETUP.format(version=metadata.version("diffusers"), needed=needed)
    (folder / "setup.py").write_text(text)
    if percent:
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
    workload, _, technique = options.scenario.rpartition("-")
    chosen = [find_scenario(workload, technique)]
    verdicts: Counter[str] = Counter()
    differ: Counter[str] = Counter()
    took_s: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copies = copied(folder / "base"), copied(folder / "head", options.slower)
        base, head = (
            Environments().prepare(Requirements.parse([str(copy)])).command for copy in copies
        )
        for number in range(options.runs):
            sides = (
                RemoteSide("base", base, Settings(device="cpu"), folder),
                RemoteSide("head", head, Settings(device="cpu"), folder),
            )
            with load() if options.load else nullcontext(), closing(sides[0]), closing(sides[1]):
                exact = Comparing(*sides, metrics=EXACT, show=lambda text: None).run(chosen)
                start_s = time.monotonic()
                timed = Comparing(*sides, metrics=("latency",), show=lambda text: None).run(chosen)
            took_s.append(time.monotonic() - start_s)
            for figure in exact.figures:
                differ[figure.verdict.metric] += figure.base != figure.head
            (latency,) = timed.figures
            verdicts[latency.verdict.outcome.value] += 1
            print(f"{number + 1}: {latency.verdict.sentence} ({took_s[-1]:.0f} s)", flush=True)
    print(f"latency: {dict(verdicts)}; exact figures that differ: {dict(+differ) or 'none'}")
    print(f"seconds of a latency: median {statistics.median(took_s):.0f}, most {max(took_s):.0f}")


if __name__ == "__main__":
    main()
