"""``tconv devices``: what there is to compute on, and how fast it is at casts and products in each precision."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tconv.errors import printable

if TYPE_CHECKING:
    from tconv.speeds import Speeds

ALIKE = 1.2  # a ratio of speeds that says nothing


def devices(
    json_: Annotated[bool, typer.Option("--json", help="As JSON, for programs.", metavar="")] = False,
) -> None:
    """List the devices, and measure them.

    Casts in GB/s (read and written), the way to a device and back in GB/s, products of matrices in GFLOP/s. Half is not
    faster everywhere: see before you convert. It takes some seconds for each.

    --json has these keys: devices [{device, called, by, casts [{from, to, bytes_per_second}], transfer {there, back} or
    null, in bytes per second, products {dtype: operations per second}}], more: how to get more, or null.
    """
    from tconv.cli import console
    from tconv.devices.names import INSTALL
    from tconv.speeds import measured

    found = measured()
    more = "" if len(found) > 1 else f"other devices need PyTorch, which is not installed; {INSTALL}"
    if json_:
        told = {"devices": list(map(_as_json, found)), "more": more or None}
        sys.stdout.write(f"{json.dumps(told, indent=1)}\n")
        return
    sys.stdout.write("".join(f"{line}\n" for line in _lines(found)))
    if more:
        console.Console(quiet=False, verbose=False).note(more)


def _lines(found: list[Speeds]) -> Iterator[str]:
    for name, called in dict.fromkeys((one.device, one.called) for one in found):
        yield f"{name}: {printable(called)}"
    yield ""
    yield from _table(found)
    yield ""
    for one in found:
        told = (f"{half} {_verdict(one.beside_single(half))}" for half in ("float16", "bfloat16"))
        yield f"{one.device} by {one.by}, products beside float32: {', '.join(told)}"


def _table(found: list[Speeds]) -> Iterator[str]:
    from tconv.speeds import FLOATS, HALVES
    from tconv.table import table

    rows: list[list[str]] = []
    for one in found:
        made = [
            ["cast from float32, GB/s", "", *(_number(one.casts["float32", half]) for half in HALVES)],
            ["cast to float32, GB/s", "", *(_number(one.casts[half, "float32"]) for half in HALVES)],
            ["product, GFLOP/s", *(_number(one.products[name]) for name in FLOATS)],
        ]
        if one.transfers is not None:
            there, back = map(_number, one.transfers)
            made.append([f"{there} GB/s there, {back} GB/s back", *[""] * len(FLOATS)])
        rows += [[*([one.device, one.by] if n == 0 else ["", ""]), *row] for n, row in enumerate(made)]
    yield from table(["device", "by", "", *FLOATS], rows, right=range(3, 3 + len(FLOATS)))


def _verdict(ratio: float) -> str:
    if 1 / ALIKE < ratio < ALIKE:
        return "about as fast"
    times, word = (ratio, "faster") if ratio > 1 else (1 / ratio, "slower")
    return f"{times:.0f} times {word}" if times >= 10 else f"{times:.1f} times {word}"


def _number(per_second: float) -> str:
    """In thousands of millions, to three digits."""
    number = per_second / 1e9
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _as_json(one: Speeds) -> dict[str, Any]:
    there, back = one.transfers or (None, None)
    return {
        "device": one.device,
        "called": one.called,
        "by": one.by,
        "casts": [{"from": src, "to": dst, "bytes_per_second": speed} for (src, dst), speed in one.casts.items()],
        "transfer": {"there": there, "back": back} if one.transfers else None,
        "products": one.products,
    }


def register(app: typer.Typer) -> None:
    app.command()(devices)
