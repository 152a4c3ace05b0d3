"""The table of QUANTIZATION.md, made of what every route does: ``python -m tests.accuracy_table`` writes it anew."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.accuracy import ROUTES, Digits, Row, trained

PATH = Path(__file__).resolve().parents[1] / "QUANTIZATION.md"
BEGIN, END = "<!-- python -m tests.accuracy_table -->\n", "<!-- end -->\n"
HEAD = "| route | scheme | accuracy before | after | size |\n|---|---|---:|---:|---:|\n"


def rendered(rows: Sequence[Row]) -> str:
    """As Markdown."""
    return HEAD + "".join(
        f"| {row.route} | {row.scheme} | {row.before:.1%} | {row.after:.1%} | {row.size:.2f} |\n" for row in rows
    )


def documented() -> list[tuple[str, ...]]:
    """The cells of the rows that the page has."""
    table = PATH.read_text(encoding="utf8").partition(BEGIN)[2].partition(END)[0]
    return [tuple(cell.strip() for cell in line.strip("|\n").split("|")) for line in table.splitlines()[2:]]


def main() -> None:
    digits = Digits()
    net = trained(digits)
    rows: list[Row] = []
    for route, _ in ROUTES.values():
        with tempfile.TemporaryDirectory() as folder:
            rows += route(Path(folder), net, digits)
    page = PATH.read_text(encoding="utf8")
    before, _, rest = page.partition(BEGIN)
    PATH.write_text(f"{before}{BEGIN}{rendered(rows)}{END}{rest.partition(END)[2]}", encoding="utf8")
    sys.stdout.write(rendered(rows))


if __name__ == "__main__":
    main()
