"""What the account of a cast costs: ``python -m tests.bench_audit [FILE.pt]`` prints times and ratios, asserts nothing.

Every number is the least of several runs, as other work on the machine only ever adds to them. A whole conversion is
that of a checkpoint of 512 MB of normal weights, made in the temporary folder unless one is given; put it on a RAM disk
(``TMPDIR=/dev/shm``), or the disk is what is measured.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
from safetensors.numpy import save_file

from tconv import job, opencv
from tconv.casts import cast, exact
from tconv.casts.rounding import nearest
from tconv.dtypes import dtype
from tconv.job import convert
from tconv.pipeline import Sugar
from tconv.request import Request, Silent
from tconv.runner import Runner

if TYPE_CHECKING:
    from tconv.casts.kinds import Pair
    from tconv.lost import Lost
    from tconv.ops import Array

PAIRS = [
    ("float32", "float16"),
    ("float32", "bfloat16"),
    ("float64", "float32"),
    ("float16", "float32"),
    ("float32", "float8_e4m3fn"),
]
SIZE = 64 << 20  # bytes of one array


def main() -> None:
    opencv.load()
    _say("bare casts of 64 MB of normal weights: ms, and the ratio to the unaudited cast")
    for src, dst in PAIRS:
        _report(f"{src} -> {dst}", *(_bare(src, dst, detail) for detail in (None, False, True)))
    _say("whole conversions of 512 MB, in this process: the command starts for a third of a second besides")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else _weights(Path(folder))
        target = str(Path(folder) / f"out{path.suffix}")
        for to in ("float16", "bfloat16", "float64"):
            request = Request((str(path),), output=target, sugar=Sugar(to=to), force=True)
            _report(f"float32 -> {to}", *_whole(request))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _report(what: str, plain: float, audited: float, detailed: float) -> None:
    ratios = f"audited {audited:7.1f} {audited / plain:6.2f}   detail {detailed:7.1f} {detailed / plain:6.2f}"
    _say(f"{what:28} {plain:7.1f}   {ratios}")


def _least(work: Callable[[], object], times: int) -> float:
    """Milliseconds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return 1e3 * min(found)


def _bare(src: str, dst: str, detail: bool | None) -> float:
    source, target = dtype(src), dtype(dst)
    x = (np.random.default_rng(0).standard_normal(SIZE // source.itemsize) * 0.02).astype(source.numpy)
    out = np.empty(x.size, target.numpy)
    if detail is None:
        with _unaudited():
            return _least(lambda: cast(x, target, out, src=source), 9)
    return _least(lambda: cast(x, target, out, src=source, detail=detail), 9)


def _whole(request: Request) -> Iterable[float]:
    def run() -> None:
        convert(request, Silent(), lambda _: None, lambda _: None)

    times: list[list[float]] = [[], [], []]
    for _ in range(15):  # in turn, so that all three see the same weather
        with _unaudited():
            times[0].append(_least(run, 1))
        times[1].append(_least(run, 1))
        with mock.patch.object(job, "Runner", _detailed):
            times[2].append(_least(run, 1))
    return map(min, times)


def _detailed(workers: int, max_memory: int, progress: Callable[[int], None], **others: Any) -> Runner:
    """What --report asks for, without the file."""
    return Runner(workers, max_memory, progress, **(others | {"detail": True}))


@contextmanager
def _unaudited() -> Iterator[None]:
    def convert_only(x: Array, out: Array, pair: Pair, lost: Lost) -> None:
        lost.count += x.size
        nearest(x, pair.src, pair.dst, out)

    with mock.patch.object(exact, "_cast", convert_only):
        yield


def _weights(folder: Path) -> Path:
    random, path = np.random.default_rng(0), folder / "weights.safetensors"
    save_file({f"{n}.weight": random.standard_normal((4096, 1024), np.float32) * 0.02 for n in range(32)}, path)
    return path


if __name__ == "__main__":
    main()
