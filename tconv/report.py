"""The report of a job (``--report FILE.json``), as REPORT.md describes it: what was done, and lost by every cast."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tconv import __version__
from tconv.account import Account
from tconv.evaluate import shrink_of
from tconv.explain import leaves
from tconv.hashing import sha256
from tconv.lost import Detail
from tconv.outcome import Place
from tconv.parts import Parts

if TYPE_CHECKING:
    from tconv.account import CastKey, RangeKey
    from tconv.errors import TconvError
    from tconv.fold import Planned
    from tconv.lost import Lost
    from tconv.outcome import Outcome
    from tconv.planner import Plan
    from tconv.tensor import Spec, Tensor

VERSION = 1


def render(planned: Plan, outcome: Outcome, skipped: Sequence[TconvError]) -> str:
    """The report as JSON text. Reads the inputs once more, for their hashes."""
    left = {Path(problem.file) for problem in skipped}
    inputs = dict.fromkeys(path for file in planned.files for path in file.sources() if path not in left)
    done = [(n, file) for n, file in enumerate(planned.files) if n not in outcome.unfinished]
    found = {
        "report": VERSION,
        "tconv": __version__,
        "steps": [str(step) for step in planned.steps],
        "notes": list(planned.notes),
        "inputs": [_input(path) for path in inputs],
        "skipped": [{"path": problem.file, "reason": _reason(problem)} for problem in skipped],
        "totals": _totals(outcome),
        "outputs": [_output(n, file, outcome) for n, file in done],
    }
    return json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _reason(problem: TconvError) -> str:
    """Why an input was left out, and by which step."""
    return "; ".join(dict.fromkeys(f"{one.step}: {one.reason}" if one.step else one.reason for one in problem.each()))


def _totals(outcome: Outcome) -> dict[str, int]:
    """Of all casts together."""
    lost = [found for account in outcome.lost.values() for found in account.by_cast.values()]
    names = ("overflow", "infinite", "nan", "underflow")
    return {"casts": len(lost), "values": sum(x.count for x in lost)} | {
        name: sum(getattr(x, name) for x in lost) for name in names
    }


def _input(path: Path) -> dict[str, Any]:
    return {"path": str(path), "bytes": path.stat().st_size, "sha256": sha256(path)}


def _output(number: int, file: Planned, outcome: Outcome) -> dict[str, Any]:
    tensors = [_tensor(Place(number, i, None), t, outcome) for i, t in enumerate(file.stream.tensors)]
    return {
        "path": str(file.path),
        "format": file.target.format.name,
        "bytes": file.writer.size,
        "tensors": tensors,
        "texts": {name: list(text) for name, text in file.stream.extra.texts.items()},
    }


def _tensor(place: Place, tensor: Tensor, outcome: Outcome) -> dict[str, Any]:
    spec = tensor.spec
    made: dict[str, Any] = {"name": spec.name, "kept": spec.attrs.get("kept")}
    if isinstance(tensor.source, Parts):
        accounts = (outcome.lost.get(place._replace(part=n)) for n in range(len(tensor.source.parts)))
        made["parts"] = [_made_of(part, account) for part, account in zip(leaves(tensor), accounts, strict=True)]
    else:
        made |= _made_of(tensor, outcome.lost.get(place))
    return made | {"after": described(spec), "same_as": spec.alias_of}


def _made_of(tensor: Tensor, account: Account | None) -> dict[str, Any]:
    source = tensor.source
    account = Account() if account is None else account  # one in which nothing was lost is false
    return {
        "source": str(source.path),
        "before": before(tensor),
        "kept": tensor.spec.attrs.get("kept"),
        "casts": [_cast(key, lost) for key, lost in account.by_cast.items()],
        "ranges": [_range(key, lost) for key, lost in account.by_range.items()],
    }


def _cast(key: CastKey, lost: Lost) -> dict[str, Any]:
    detail = lost.detail or Detail()
    return {
        "step": key.step,
        "from": str(key.src),
        "to": str(key.dst),
        "on_overflow": key.on_overflow,
        "values": lost.count,
        "min": lost.minimum,
        "max": lost.maximum,
        "overflow": lost.overflow,
        "infinite": lost.infinite,
        "nan": lost.nan,
        "underflow": lost.underflow,
        "inexact_integers": lost.inexact,
        "source_nan": detail.nan,
        "source_inf": detail.inf,
        "subnormal": detail.subnormal,
        "inexact": detail.inexact,
        "max_abs_error": detail.max_abs_error,
        "max_rel_error": detail.max_rel_error,
        "sqnr_db": round(detail.sqnr, 9),  # further digits depend on the order in which squares were added
    }


def _range(key: RangeKey, lost: Lost) -> dict[str, Any]:
    outside = lost.overflow + lost.infinite + lost.nan
    return {"range": key.range, "values": lost.count, "outside": outside, "min": lost.minimum, "max": lost.maximum}


def before(tensor: Tensor) -> dict[str, Any]:
    """What a tensor is in its file, and at which part of its size it is decoded if that is less than all."""
    source, shrink = tensor.source, shrink_of(tensor)
    return {"dtype": str(source.dtype), "shape": source.shape} | ({"shrink": shrink} if shrink > 1 else {})


def described(spec: Spec) -> dict[str, Any]:
    """What a tensor is, in numbers and names."""
    return {
        "dtype": str(spec.dtype),
        "shape": spec.shape,
        "axes": spec.axes,
        "range": spec.range,
        "device": spec.device,
    }


def plain(value: Any) -> Any:
    """What JSON can hold: numbers that it lacks become null."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
