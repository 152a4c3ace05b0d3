"""What devices there are and how fast each is, the CPU by tconv's own casts too: half is not faster everywhere."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tconv import casts
from tconv.devices import names
from tconv.devices.timing import growing, rate
from tconv.dtypes import dtype

CASTS = (("float32", "float16"), ("float32", "bfloat16"), ("float16", "float32"))
FLOATS = ("float32", "float16", "bfloat16")
COUNT = 1 << 22  # elements that are cast
_LARGEST = 1024


@dataclass(frozen=True)
class Speeds:
    """Of one device ``by`` one library. ``casts``: bytes read and written per second; ``products``: operations per
    second in a product of two matrices; ``transfers``: bytes per second there and back, None for the CPU.
    """

    device: str
    called: str
    by: str
    casts: dict[tuple[str, str], float]
    products: dict[str, float]
    transfers: tuple[float, float] | None = None


def measured() -> list[Speeds]:
    """All devices that there are, the CPU first; it takes some seconds each."""
    found = [_own()]
    try:
        from tconv.devices import speed, there
    except ImportError:
        return found
    for device, called in [(names.CPU, _processor()), *there.everything()]:
        made = speed.casts(device, CASTS, COUNT), speed.products(device, FLOATS)
        found.append(Speeds(device, called, "PyTorch", *made, speed.transfers(device)))
    return found


def _own() -> Speeds:
    """What tconv does without torch: its casts, with their account, and NumPy's products."""
    rng = np.random.default_rng(0)
    made = {}
    for src, dst in CASTS:
        x = rng.random(COUNT, np.float32).astype(dtype(src).numpy)
        out = np.empty(COUNT, dtype(dst).numpy)
        work = partial(casts.cast, x, dtype(dst), out, src=dtype(src))
        made[src, dst] = rate(work, x.nbytes + out.nbytes)
    products = {name: growing(partial(_product, name), 64, _LARGEST, lambda n: 2.0 * n**3) for name in FLOATS}
    return Speeds(names.CPU, _processor(), "tconv, NumPy", made, products)


def _product(name: str, size: int) -> Callable[[], object]:
    a = np.random.default_rng(0).random((size, size), np.float32).astype(dtype(name).numpy)
    return lambda: a @ a


def _processor() -> str:
    return platform.processor() or platform.machine()
