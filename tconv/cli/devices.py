"""``tconv devices``: what there is to compute on, and how fast it is at casts and products in each precision."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tconv.speeds import Speeds


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
    sys.stdout.write("".join(f"{line}\n" for line in _table(found)))
    if more:
        console.Console(quiet=False, verbose=False).note(more)


def _table(found: list[Speeds]) -> list[str]:
    from tconv.speeds import CASTS, FLOATS
    from tconv.table import table

    header = ["device", "", "by", *(f"{src} to {dst}" for src, dst in CASTS), "there", "back"]
    header += [f"product {name}" for name in FLOATS]
    units = ["", "", "", *["GB/s"] * (len(CASTS) + 2), *["GFLOP/s"] * len(FLOATS)]
    rows = [
        [one.device, one.called, one.by]
        + [_number(one.casts[pair]) for pair in CASTS]
        + [_number(way) for way in one.transfers or ()]
        + [""] * (0 if one.transfers else 2)
        + [_number(one.products[name]) for name in FLOATS]
        for one in found
    ]
    return list(table(header, [units, *rows], right=range(3, len(header))))


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
