"""The plan as JSON, for programs: what ``--print json`` writes; its keys are in the help of ``tconv plan``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tconv import crossings, explain
from tconv.parts import Parts
from tconv.report import before, described, plain

if TYPE_CHECKING:
    from tconv.fold import Planned
    from tconv.planner import Plan
    from tconv.tensor import Tensor

VERSION = 1


def render(plan: Plan) -> str:
    costs = explain.costs(plan)
    found = {
        "plan": VERSION,
        "steps": list(map(str, plan.steps)),
        "notes": plan.notes,
        "skipped": [{"path": problem.file, "reason": problem.reason} for problem in plan.skipped],
        "in_the_way": [problem.file for problem in plan.in_the_way],
        "files": list(map(_file, plan.files)),
        "beside": [{"path": str(one.path), "bytes": one.size} for one in plan.companions],
        "passes": [
            {"tensors": count, "passes": [{"steps": one.steps, "how": one.how} for one in passes]}
            for passes, count in explain.chains(plan)
        ],
        "transfers": list(map(_transfer, crossings.transfers(plan))),
        "on_cpu": [{"steps": steps, "why": why} for steps, why in crossings.left(plan)],
        "decoders": dict(explain.decoders(plan)),
        "bytes": {"read": costs.read, "moved": costs.moved, "written": costs.written},
        "peak_memory": plan.peak_memory,
        "workers": plan.workers,
    }
    return json.dumps(plain(found), indent=1, ensure_ascii=False, allow_nan=False)


def _transfer(one: crossings.Transfer) -> dict[str, Any]:
    there = {"dtype": str(one.there), "bytes": one.bytes_there}
    back = {"dtype": str(one.back), "bytes": one.bytes_back}
    return {"device": one.device, "tensors": one.tensors, "there": there, "back": back}


def _file(file: Planned) -> dict[str, Any]:
    return {
        "path": str(file.path),
        "format": file.target.format.name,
        "bytes": file.writer.size,
        "tensors": list(map(_tensor, file.stream.tensors)),
        "traces": [{"tensor": trace[0].name, "specs": list(map(described, trace))} for trace in file.traces],
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    spec, source = tensor.spec, tensor.source
    after = {"name": spec.name, "after": described(spec), "same_as": spec.alias_of}
    if isinstance(source, Parts):
        return after | {"parts": list(map(_made_of, explain.leaves(tensor)))}
    return after | _made_of(tensor)


def _made_of(tensor: Tensor) -> dict[str, Any]:
    return {"source": str(tensor.source.path), "before": before(tensor)}
