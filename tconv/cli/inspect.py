"""``tconv inspect PATH...``: what is in files, from headers alone."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tconv.tensor import Spec


def inspect(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files, folders or globs.", show_default=False)],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="GLOB", help="Tensors whose name matches; repeatable.", show_default=False),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="A traceback with errors.", show_default=False)
    ] = False,  # the root looks for it
) -> int:
    """List the tensors in files, from headers alone.

    Name, dtype, shape, axes, device tag, bytes; which share their storage, which require gradients.

    tconv inspect ckpt.pt

    tconv inspect model.safetensors --only 'layers.0.*'
    """
    from tconv import registry, selection
    from tconv.errors import TconvError, raise_all
    from tconv.inputs import find
    from tconv.tensor import ReadOptions

    found = find(paths)
    problems: list[TconvError] = list(found.failures)
    for text in found.notes:
        sys.stderr.write(f"{text}\n")
    for one in found.inputs:
        try:
            stream = registry.reader(one.format)(one.path, one.name, ReadOptions(channels="keep", frames="all"))
            stream = selection.matching(stream, only or [], [])
        except TconvError as problem:
            problems.append(problem.at(file=one.path))
            continue
        except OSError as problem:
            problems.append(TconvError(f"cannot be read: {problem.strerror or problem}", file=one.path))
            continue
        _print(f"{one.path}: {one.format.title}", [t.spec for t in stream.tensors])
        for text in stream.notes:
            sys.stderr.write(f"{text}\n")
    sys.stdout.flush()
    raise_all(problems)
    return 0


def _print(title: str, specs: list[Spec]) -> None:
    from tconv.cli.console import human
    from tconv.cli.plan import shape
    from tconv.cli.table import table

    rows = [[s.name, str(s.dtype), shape(s.shape), s.axes or "", s.device, f"{s.nbytes:,}", _marks(s)] for s in specs]
    header = ["name", "dtype", "shape", "axes", "device", "bytes", ""]
    kept = [n for n, title in enumerate(header) if n in (0, 1, 2, 5) or _tells(n, [r[n] for r in rows])]
    lines = table([header[n] for n in kept], [[r[n] for n in kept] for r in rows], right=[kept.index(5)])
    total = sum(s.nbytes for s in specs if s.alias_of is None)
    count = f"{len(specs):,} tensor{'s' * (len(specs) != 1)}"
    sys.stdout.write("\n".join([title, *(f"  {line}" for line in lines), f"  {count}, {human(total)}", ""]))


def _tells(column: int, cells: list[str]) -> bool:
    """Whether a column says anything: a device column of nothing but cpu does not."""
    return any(c and not (column == 4 and c == "cpu") for c in cells)


def _marks(spec: Spec) -> str:
    marks = ["same as " + spec.alias_of] if spec.alias_of else []
    if spec.attrs.get("requires_grad"):
        marks.append("requires_grad")
    return ", ".join(marks)


def register(app: typer.Typer) -> None:
    app.command()(inspect)
