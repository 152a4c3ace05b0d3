"""The tables and the JSON of ``tconv inspect``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tconv.cli.reading import Opened, counted, number, short
from tconv.formats import order
from tconv.formats.raw import c_strides
from tconv.formats.torch.sharing import View, share
from tconv.inputs import natural
from tconv.plan_text import shape
from tconv.selection import first_few
from tconv.sizes import human
from tconv.table import table

if TYPE_CHECKING:
    from tconv.measure.statistics import Summary
    from tconv.tensor import Spec, Tensor

BARS = "·▁▂▃▅▇"  # none, and few to most
PLAIN_BARS = "_.:+*#"
QUANTILES = ("1%", "50%", "99%")
ROUGH = 3  # digits of a quantile that is not exact


@dataclass
class Row:
    """A tensor of a file. ``shares``: how (same, part) it has the bytes of which other one."""

    file: Opened
    tensor: Tensor
    shares: tuple[str, str] | None
    summary: Summary | None = None

    @property
    def spec(self) -> Spec:
        return self.tensor.spec


@dataclass
class File:
    """A file and its tensors, in the order in which they are listed."""

    opened: Opened
    rows: list[Row]


def rows(opened: Opened) -> File:
    specs = [t.spec for t in opened.stream.tensors]
    made = []
    for n, (tensor, view) in enumerate(zip(opened.stream.tensors, share(specs), strict=True)):
        base = specs[view.base]
        whole = view == View(view.base, 0, c_strides(base.shape)) and tensor.spec.shape == base.shape
        shares = None if view.base == n else ("same" if whole else "part", base.name)
        made.append(Row(opened, tensor, shares))
    return File(opened, made)


def arrange(files: Sequence[File], column: str, *, descending: bool) -> list[File]:
    """The tensors of each file sorted by a column, and the files that share a table too; what has none comes last."""

    def key(row: Row) -> Any:
        if descending:
            found = row.spec.nbytes if column == "bytes" else getattr(row.summary, column, None)
            return found is None, -(found or 0)
        return row.spec.shape if column == "shape" else natural(Path(str(getattr(row.spec, column))))

    for file in files:
        file.rows.sort(key=key)
    groups = _groups(files)
    for group in groups:
        if len(group) > 1:
            group.sort(key=lambda file: key(file.rows[0]))
    return [file for group in groups for file in group]


def _groups(files: Sequence[File]) -> list[list[File]]:
    """Files in a row that hold a single tensor share a table; each of the others has its own."""
    groups: list[list[File]] = []
    for file in files:
        if groups and len(file.rows) == len(groups[-1][0].rows) == 1:
            groups[-1].append(file)
        else:
            groups.append([file])
    return groups


def lines(files: Sequence[File], read_values: bool) -> Iterator[str]:
    """The tables, each with its totals, and the totals of all of them."""
    groups = _groups(files)
    for group in groups:
        listed = [row for file in group for row in file.rows]
        shared = len(group) > 1
        if not shared:
            yield f"{group[0].opened.input.path}: {group[0].opened.input.format.title}"
        indent = "" if shared else "  "
        for line in _table(listed, _columns(shared, read_values)) if listed else ():
            yield f"{indent}{line}"
        yield f"{indent}{_total(group)}"
        texts = {} if shared else group[0].opened.stream.extra.texts
        yield from (f"{indent}{name}: {len(text):,} texts, {first_few(text)}" for name, text in texts.items())
    if len(groups) > 1:
        yield f"total: {_total(files)}"


class _Column(NamedTuple):
    """``silent``: the text that says nothing; a column of nothing else is left out, unless it is None."""

    title: str
    cell: Callable[[Row], str]
    right: bool = False
    silent: str | None = None


def _columns(shared: bool, read_values: bool) -> list[_Column]:
    found = [_Column("name", lambda row: row.spec.name)]
    if shared:
        found = [
            _Column("file", lambda row: str(row.file.input.path)),
            _Column("name", _untold_name, silent=""),
            _Column("format", lambda row: row.file.input.format.name),
        ]
    found += [
        _Column("dtype", lambda row: str(row.spec.dtype)),
        _Column("shape", lambda row: shape(row.spec.shape)),
        _Column("axes", lambda row: " ".join(filter(None, (row.spec.axes, order.word(row.spec)))), silent=""),
        _Column("device", lambda row: row.spec.device, silent="cpu"),
        _Column("bytes", lambda row: f"{row.spec.nbytes:,}", right=True),
        _Column("shard", lambda row: row.spec.attrs.get("shard", ""), silent=""),
    ]
    return [*found, *(_value_columns() if read_values else ()), _Column("", _marks, silent="")]


def _value_columns() -> list[_Column]:
    def told(field: str) -> Callable[[Row], str]:
        return lambda row: short(getattr(row.summary, field, None))

    def quantile(n: int) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            found = row.summary and row.summary.quantiles
            return short(found[n], 6 if row.summary and row.summary.exact else ROUGH) if found else ""

        return cell

    def count(field: str) -> Callable[[Row], str]:
        return lambda row: f"{getattr(row.summary, field):,}" if row.summary else ""

    counts = [_Column(title, count(title.lower()), right=True) for title in ("NaN", "inf", "zeros")]
    numbers = [_Column(title, told(title), right=True) for title in ("min", "max", "mean")]
    quantiles = [_Column(title, quantile(n), right=True) for n, title in enumerate(QUANTILES)]
    return [*numbers, *quantiles, *counts, _Column("min to max", _bars, silent="")]


def _table(listed: Sequence[Row], columns: Sequence[_Column]) -> Iterator[str]:
    cells = [[column.cell(row) for row in listed] for column in columns]
    kept = [n for n, column in enumerate(columns) if column.silent is None or {*cells[n]} - {column.silent, ""}]
    titles = [columns[n].title for n in kept]
    right = [at for at, n in enumerate(kept) if columns[n].right]
    return table(titles, list(zip(*(cells[n] for n in kept), strict=True)), right)


def _untold_name(row: Row) -> str:
    """The name, unless the path of the file tells it."""
    path, name = row.file.input.path, row.spec.name
    return "" if f"/{path.as_posix()}".endswith(f"/{name}") or path.stem == name else name


def _marks(row: Row) -> str:
    marks = [f"{'same as' if row.shares[0] == 'same' else 'part of'} {row.shares[1]}"] if row.shares else []
    if row.spec.attrs.get("requires_grad"):
        marks.append("requires_grad")
    if row.summary and row.spec.dtype.kind == "complex":
        marks.append("values: magnitudes")
    return ", ".join(marks)


def _bars(row: Row) -> str:
    """The spread as a row of bars, each up to a fifth, two fifths … of the highest one."""
    if not row.summary or not row.summary.spread:
        return ""
    wide = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    most = max(row.summary.spread)
    return "".join((BARS if wide else PLAIN_BARS)[-(-5 * count // most)] for count in row.summary.spread)


def _total(files: Sequence[File]) -> str:
    """``27 tensors, 18.5 kB: 26 float32 (18.5 kB), 1 int64 (8 B)``."""
    count, size, dtypes = _totals(files)
    text = counted(count, "tensor") + (f" in {counted(len(files), 'file')}" if len(files) > 1 else "")
    text += f", {human(size)}"
    if len(dtypes) > 1:
        text += ": " + ", ".join(f"{n:,} {name} ({human(nbytes)})" for name, (n, nbytes) in dtypes.items())
    return text


def _totals(files: Sequence[File]) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """Tensors, bytes, and both by dtype, the most frequent first. Bytes that are shared count once."""
    numbers: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for file in files:
        for row in file.rows:
            numbers[row.spec.dtype.name] += 1
            sizes[row.spec.dtype.name] += 0 if row.shares else row.spec.nbytes
    return numbers.total(), sizes.total(), {name: (n, sizes[name]) for name, n in numbers.most_common()}


def as_json(files: Sequence[File]) -> dict[str, Any]:
    """What the help of ``inspect`` says."""
    count, size, dtypes = _totals(files)
    return {
        "files": [
            {
                "path": str(file.opened.input.path),
                "format": file.opened.input.format.name,
                "kind": file.opened.stream.extra.kind,
                "tensors": [_tensor(row) for row in file.rows],
            }
            for file in files
        ],
        "totals": {
            "tensors": count,
            "bytes": size,
            "dtypes": {name: {"tensors": n, "bytes": nbytes} for name, (n, nbytes) in dtypes.items()},
        },
    }


def _tensor(row: Row) -> dict[str, Any]:
    spec = row.spec
    return {
        "name": spec.name,
        "dtype": spec.dtype.name,
        "shape": list(spec.shape),
        "axes": spec.axes,
        "channels": order.word(spec),
        "range": [number(bound) for bound in spec.range] if spec.range else None,
        "device": spec.device,
        "bytes": spec.nbytes,
        "requires_grad": bool(spec.attrs.get("requires_grad")),
        "shares": {"how": row.shares[0], "of": row.shares[1]} if row.shares else None,
        "values": _values(row.summary, spec) if row.summary else None,
    }


def _values(summary: Summary, spec: Spec) -> dict[str, Any]:
    quantiles = summary.quantiles
    return {
        "of": "magnitudes" if spec.dtype.kind == "complex" else "values",
        "count": summary.count,
        "nan": summary.nan,
        "inf": summary.inf,
        "zeros": summary.zeros,
        "min": summary.min,
        "max": summary.max,
        "mean": summary.mean,
        "quantiles": dict(zip(QUANTILES, quantiles, strict=True)) if quantiles else None,
        "spread": list(summary.spread) if summary.spread else None,
        "exact": summary.exact,
    }
