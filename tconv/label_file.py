"""A file of labels, CSV or JSON Lines: what each row says of which file, and nothing that it does not say."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tconv.errors import TconvError
from tconv.formats import strict_json
from tconv.small_files import read_small
from tconv.suggest import did_you_mean

DEEPEST = 8  # lists in lists: the axes of a label
SAMPLE, HEAD = 20, 1 << 22  # rows by which the delimiter is told, and the characters in which they are looked for
MAX_BYTES = 1 << 28  # some millions of rows; more is no file of labels
PATHS = ("path", "file_name", "filename", "file", "filepath", "file_path", "image", "image_path", "img", "name")
LABELS = ("label", "labels", "class", "class_name", "target", "category", "y")

_DELIMITERS = ",\t;| "
_INTEGER, _CODE = re.compile(r"[+-]?(0|[1-9][0-9]*)"), re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Row(NamedTuple):
    """``value``: an integer, a float, a text, or a list of numbers or of such lists."""

    line: int
    path: str
    value: Any


@dataclass(frozen=True)
class LabelFile:
    """The rows, and what the user should hear (one sentence each)."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def read(path: Path, knows: Callable[[str], bool]) -> LabelFile:
    """The rows of a CSV file (any common delimiter, with a header or without) or of JSON Lines, in UTF-8.

    ``knows`` says whether a text is the path of an image: it decides between delimiters, and whether a first row is a
    header. Raises ``TconvError``, which names the file and the line, for what is neither, lacks a path or a label, or
    is too large.
    """
    try:
        raw = read_small(path, "file of labels", MAX_BYTES)
        text = _text(raw)
        lines = path.suffix.lower() in (".jsonl", ".ndjson", ".json") or text.lstrip().startswith("{")
        found = _from_json(text) if lines else _from_csv(text, knows)
        if not found.rows:
            raise TconvError("holds no label")
    except TconvError as problem:
        raise problem.at(file=path) from None
    return found


def _text(raw: bytes) -> str:
    if b"\0" in raw:
        raise TconvError("is no text in UTF-8: it holds NUL bytes", remedy="save it as UTF-8, as CSV or JSON Lines")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise TconvError(f"is no text in UTF-8: byte {problem.start:,} is not", remedy="save it as UTF-8") from problem


def _from_json(text: str) -> LabelFile:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        fields = strict_json.parse(line.encode(), f"line {number}")
        _refuse_doubles(list(fields), number)
        path_key = _column(list(fields), PATHS, number)
        label_key = _label_column([key for key in fields if key != path_key], number)
        path, value = fields[path_key], fields[label_key]
        if not isinstance(path, str) or not path:
            raise TconvError(f"line {number}: {path_key!r} is no path")
        rows.append(Row(number, path, _checked(value, number)))
    return LabelFile(tuple(rows))


def _checked(value: Any, line: int, deep: int = 0) -> Any:
    """What can be a label: numbers (true and false are 1 and 0), text, lists of numbers."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float) or (isinstance(value, str) and value and "\0" not in value):
        return value
    if isinstance(value, list) and deep < DEEPEST and all(isinstance(item, int | float | list) for item in value):
        return [_checked(item, line, deep + 1) for item in value]
    shown = "null" if value is None else repr(value)
    raise TconvError(
        f"line {line}: {shown[:60]} is no label", remedy="a label is a number, a text, or a list of numbers"
    )


def _refuse_doubles(names: Sequence[str], line: int) -> None:
    """Refuse two columns of one name, as nobody knows which is meant: capitals tell no columns apart."""
    folded = [name.strip().lower() for name in names]
    twice = [name for n, name in enumerate(folded) if name and name in folded[:n]]
    if twice:
        called = ", ".join(repr(name) for name, key in zip(names, folded, strict=True) if key == twice[0])
        raise TconvError(f"line {line}: several columns have one name: {called[:200]}", remedy="rename all but one")


def _column(names: Sequence[str], known: Sequence[str], line: int) -> str:
    """The name among ``names`` that ``known`` has first."""
    folded = {name.strip().lower(): name for name in names}
    found = next((folded[name] for name in known if name in folded), None)
    if found is None:
        there = f"its columns are {', '.join(names)[:200]}" if names else "it has no columns"
        wanted = f"call one of them {known[0]}, {known[1]} …"
        near = did_you_mean(names[0].lower(), known, wanted) if len(names) == 1 else wanted
        raise TconvError(f"line {line}: no column is called {known[0]}: {there}", remedy=near)
    return found


def _label_column(names: Sequence[str], line: int) -> str:
    """That of the label: the only one besides the path, or the one that is called so."""
    return names[0] if len(names) == 1 else _column(names, LABELS, line)


def _from_csv(text: str, knows: Callable[[str], bool]) -> LabelFile:
    table = _table(text, knows)
    if not table:
        return LabelFile(())
    first_line, first = table[0]
    headed = any(cell.strip().lower() in PATHS for cell in first) and not any(map(knows, first))
    if headed:
        _refuse_doubles(first, first_line)
        path_name = _column(first, PATHS, first_line)
        label_name = _label_column([name for name in first if name != path_name], first_line)
        path_at, label_at = first.index(path_name), first.index(label_name)
        left = [name for name in first if name not in (path_name, label_name)]
        notes = [f"of its columns {label_name} is the label; {', '.join(left)[:200]} are not used"] if left else []
        table = table[1:]
    elif len(first) == 2:
        path_at, label_at, notes = 0, 1, []
    else:
        raise TconvError(
            f"line {first_line}: {len(first)} columns, and no header that says which is the path and which the label",
            remedy="put a line path,label before them",
        )
    cells = [(line, row[path_at].strip(), row[label_at].strip()) for line, row in table]
    for line, path, label in cells:
        if not path or not label:
            raise TconvError(f"line {line}: the {'label' if path else 'path'} is missing")
    parse = _parser([label for _, _, label in cells])
    return LabelFile(tuple(Row(line, path, parse(label)) for line, path, label in cells), tuple(notes))


def _table(text: str, knows: Callable[[str], bool]) -> list[tuple[int, list[str]]]:
    """The rows with their lines, by the delimiter that makes equal rows, and paths of images, of the first ones."""

    def worth(delimiter: str) -> tuple[int, bool]:
        try:
            rows = [row for _, row in islice(_rows(text[:HEAD], delimiter), SAMPLE)]
        except TconvError:  # which is told if no other delimiter is better
            return -1, False
        if not rows or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            return -1, False
        return sum(any(map(knows, row)) for row in rows), rows[0][0].strip().lower() in PATHS

    best = max(_DELIMITERS, key=worth)
    if worth(best)[0] < 0:
        if not text.strip():
            return []
        raise TconvError(
            "no delimiter makes columns of it", remedy="a row is a path and a label with a comma between them"
        )
    table = list(_rows(text, best))
    for line, row in table:
        if len(row) != len(table[0][1]):
            raise TconvError(f"line {line}: {len(row)} columns, and {len(table[0][1])} in the first line")
    return table


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, each with the number of its line."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        yield from ((reader.line_num, row) for row in reader if any(cell.strip() for cell in row))
    except csv.Error as problem:
        raise TconvError(f"line {reader.line_num}: broken CSV: {problem}") from problem


def _parser(cells: Sequence[str]) -> Callable[[str], Any]:
    """What makes values of the cells of a column: all of them decide, so that one number among texts is no number.

    Digits after a leading zero are a code, as ``007`` is: a text. Raises ``TconvError`` for numbers among texts.
    """
    if all(map(_INTEGER.fullmatch, cells)):
        return _integer
    if all(map(_CODE.fullmatch, cells)):
        return str
    if all(map(_NUMBER.fullmatch, cells)):
        return lambda cell: _integer(cell) if _INTEGER.fullmatch(cell) else float(cell)
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
    if numbers:
        text = next(cell for cell in cells if not _NUMBER.fullmatch(cell))
        raise TconvError(
            f"some labels are numbers ({numbers[0][:40]}) and others are text ({text[:40]})",
            remedy='JSON Lines say which they are: {"path": "a.png", "label": "7"}',
        )
    return str


def _integer(cell: str) -> int:
    if len(cell) > 20:
        raise TconvError(f"the label {cell[:40]}… does not fit int64")
    return int(cell)
