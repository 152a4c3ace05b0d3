"""CASTS.md, made of what casts do to edge values: ``python -m tests.casts_table`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from tconv.casts import cast, check_pair
from tconv.dtypes import DTYPES, DType
from tconv.errors import TconvError
from tconv.lost import part
from tests.exact import all_bits, edges

PATH = Path(__file__).resolve().parents[1] / "CASTS.md"

RULES = {
    "exact": "every value of the source is one of the target",
    "rounds": "once, from the exact value, to the nearest, ties to even; what rounds to 0 is counted",
    "overflows": "exact within the target's range; what lies outside is an error",
    "rounds and overflows": "as above, and what rounds to beyond the largest value is an error",
    "truncates": "toward zero",
    "truncates and overflows": "toward zero; what then lies outside, infinities and NaN are errors",
    "asks": "whether the value is not 0, which NaN is not either; loses nothing",
}

HEAD = """# Casts

What `cast(DTYPE)` and `--to DTYPE` do, from every dtype to every other. This page is made of what happens to the edges
of each pair (`python -m tests.casts_table`), and a test fails where it is not true.

{rules}

What is an error is one by default, once all of the input was looked at, and told for each tensor: how many values, the
extremes, what can be done. `--on-overflow saturate` takes the nearest value that the target has, for infinities too
where it has none; `--on-overflow inf` makes finite values infinite, for targets that have an infinity. NaN stays NaN,
and is an error where the target has none. -0.0 stays -0.0, but in the fnuz types, which have one zero. An infinity
stays one where the target has it. A complex number is two real ones; a real one becomes the real part. What a row does
not name is refused: a complex number as a real one would lose its imaginary part.

| from | {columns} |
|---|{lines}|
{rows}

In files 4-bit values lie two in a byte, the first in the lower half.
"""


def render() -> str:
    """The page, from what casts do now."""
    columns = list(RULES)
    rows = []
    for src in DTYPES.values():
        found = {dst.name: rule(src, dst) for dst in DTYPES.values() if dst != src}
        cells = [", ".join(name for name, kind in found.items() if kind == column) for column in columns]
        rows.append(f"| **{src}** | {' | '.join(cells)} |")
    return HEAD.format(
        rules="\n".join(f"- **{name}**: {text}" for name, text in RULES.items()),
        columns=" | ".join(columns),
        lines="|".join("---" for _ in columns),
        rows="\n".join(rows),
    )


def rule(src: DType, dst: DType) -> str | None:
    """What a cast does to the values at which it may do something; None where it is refused."""
    try:
        check_pair(src, dst)
    except TconvError:
        return None
    if dst.kind == "bool":
        return "asks"
    real, target = (part(d) if d.kind == "complex" else d for d in (src, dst))
    x = all_bits(real) if real.bits == 16 or (real.is_float and real.bits <= 8) else edges(real, target)
    lost = cast(x.view(src.numpy), dst, src=src, detail=True)[1]
    assert lost.detail is not None
    ways = [("truncates" if target.is_integer else "rounds", lost.detail.inexact)]
    ways.append(("overflows", lost.overflow + lost.infinite + lost.nan))
    return " and ".join(way for way, count in ways if count) or "exact"


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf8")
