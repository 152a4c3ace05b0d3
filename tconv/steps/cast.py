"""cast: to another dtype, rounded once, with an account of what does not fit and exceptions that stay as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tconv import casts, dtypes
from tconv.errors import TconvError, UsageError
from tconv.ops import CastTo
from tconv.parts import Parts
from tconv.steps.norms import normalization
from tconv.steps.touch import is_floating, on_touched
from tconv.tensor import Step

if TYPE_CHECKING:
    from tconv.account import Account, CastKey
    from tconv.dtypes import DType
    from tconv.lost import Lost
    from tconv.tensor import Range, Scan, Spec, Stream, Tensor

POLICIES = ("amp",)
FLOAT32, FLOAT64 = dtypes.dtype("float32"), dtypes.dtype("float64")


@dataclass(frozen=True)
class Cast(Step):
    """To ``dtype``, by any name of it; what does not fit is handled as ``on_overflow`` says: error (which None means),
    saturate, inf, or keep, which leaves that tensor in its dtype.

    Exceptions, of which the first that applies counts: ``keep``, globs on names, each for "as it is" or, written
    ``GLOB=DTYPE``, for another dtype; ``policy="amp"``, by which normalization layers are float32; ``max_error``, the
    largest relative error of a value for which a tensor is still cast. What already has the dtype is left alone.
    """

    name: ClassVar[str] = "cast"
    rounds: ClassVar[bool] = True
    usage: ClassVar[str] = (
        "cast(float16), cast(uint8, on_overflow=saturate), cast(half, keep=['*.head.*', 'n*=float32'])"
    )

    dtype: str
    on_overflow: str | None = None
    keep: tuple[str, ...] = ()
    policy: str | None = None
    max_error: float | None = None

    def __post_init__(self) -> None:
        target = dtypes.dtype(self.dtype)
        casts.check_policy(target, self._rounding)
        if self.policy is not None and self.policy not in POLICIES:
            raise UsageError(
                f"there is no policy {self.policy!r}", remedy=f"there is {', '.join(POLICIES)}", step="cast"
            )
        if self.max_error is not None and not 0 <= self.max_error < float("inf"):
            raise UsageError(f"max_error is {self.max_error}; it must be 0 or more", step="cast")
        object.__setattr__(self, "dtype", target.name)
        object.__setattr__(self, "keep", tuple(str(_Exception(text)) for text in self.keep))

    @property
    def target(self) -> DType:
        return dtypes.dtype(self.dtype)

    @property
    def _rounding(self) -> str:
        """The policy for tensors that are cast: nothing overflows in them under "keep"."""
        return "error" if self.on_overflow in (None, "keep") else str(self.on_overflow)

    @property
    def needs_scan(self) -> bool:
        return self.on_overflow == "keep" or self.max_error is not None

    def fit(self, stream: Stream, scan: Scan) -> tuple[Cast, tuple[str, ...]]:
        """With those tensors among ``keep`` that values decide about."""
        tried = replace(self, on_overflow="error", max_error=None)
        made = tried.apply(stream).tensors
        cast = [t for t in made if _last_cast(t, tried) is not None]
        accounts = scan(cast, self.max_error is not None)
        before = {t.spec.name: t.spec.dtype for t in stream.tensors}
        names, notes = list[str](), list[str]()
        for tensor, account in zip(cast, accounts, strict=True):
            why = next(filter(None, (self._why(key, lost) for key, lost in _of(account, tried))), "")
            if not why:
                continue
            name, file = tensor.spec.name, tensor.source.path
            if isinstance(tensor.source, Parts):
                raise TconvError(
                    f"a stack has one dtype, so no part of it can stay as it is; {why}",
                    remedy="choose another --on-overflow, or write each by itself without --stack",
                    tensor=name,
                    file=file,
                    step=str(self),
                )
            stays = f"stays {before[name]}: {why}"
            notes.append(str(TconvError(stays, file=file, tensor=name, step=str(self))))
            names.append(name)
        plain = {"dtype": self.dtype, "on_overflow": self._rounding, "keep": self.keep, "policy": self.policy}
        return _Settled(**plain, stay=frozenset(names), asked=str(self)), tuple(notes)  # type: ignore[arg-type]  # fields of several types

    def _why(self, key: CastKey, lost: Lost) -> str:
        """Why a tensor that loses this is not cast, or nothing."""
        if self.on_overflow == "keep" and lost.bad("error"):
            return lost.describe(key.src, key.dst)
        if self.max_error is not None and _error(lost) > self.max_error:
            return f"a value would be off by {_error(lost):.2g} of itself, and {self.max_error:g} is allowed"
        return ""

    def apply(self, stream: Stream) -> Stream:
        kind = stream.extra.kind
        targets = self._targets(stream)
        inert = [t.spec.name for t in stream.tensors if targets[t.spec.name] in (None, t.spec.dtype)]
        made = on_touched(
            stream,
            self,
            lambda t: self._cast(t, targets[t.spec.name], kind),
            all_fields=self.target.is_integer,
            complex_too=self.target.kind == "complex",
            inert=inert,
        )
        return made.with_tensors(made.tensors, *self._told(stream))

    def _targets(self, stream: Stream) -> dict[str, DType | None]:
        """The dtype for each tensor, None for those that stay as they are."""
        exceptions = [_Exception(text) for text in self.keep]
        norms = normalization(t.spec for t in stream.tensors) if self.policy == "amp" else set()
        targets: dict[str, DType | None] = {}
        for name in (t.spec.name for t in stream.tensors):
            found = next((e for e in exceptions if e.matches(name)), None)
            targets[name] = found.dtype if found else FLOAT32 if name in norms else self.target
        return targets

    def _told(self, stream: Stream) -> list[str]:
        """What the user should hear of the policy."""
        names = [t.spec.name for t in stream.tensors]
        notes = []
        if self.policy == "amp":
            norms = normalization(t.spec for t in stream.tensors if is_floating(t.spec.dtype))
            first = next((name for name in names if name in norms), "")
            more = f" and {len(norms) - 1} more" if len(norms) > 1 else ""
            what = f"normalization layers are float32 ({first}{more})" if first else "no normalization layer is known"
            notes.append(f"{self}: {what}")
        return notes

    def _cast(self, tensor: Tensor, target: DType | None, kind: str) -> Tensor:
        spec = tensor.spec
        if target is None or spec.dtype == target:
            return tensor
        casts.check_pair(spec.dtype, target)
        if spec.dtype.is_float:
            _refuse_vanishing(spec, target, kind)
        policy = self._rounding
        made = tensor.then(
            CastTo(dtype=target, on_overflow=policy, step=str(self)), range=_rounded(spec.range, target, policy)
        )
        if not self.needs_scan:
            return made
        undecided = {**made.spec.attrs, "undecided": str(spec.dtype)}
        return replace(made, spec=replace(made.spec, attrs=undecided))

    def __str__(self) -> str:
        parts = [self.dtype]
        if self.on_overflow is not None:
            parts.append(f"on_overflow={self.on_overflow}")
        if self.keep:
            parts.append("keep=[" + ", ".join(f"'{pattern}'" for pattern in self.keep) + "]")
        if self.policy is not None:
            parts.append(f"policy={self.policy}")
        if self.max_error is not None:
            parts.append(f"max_error={self.max_error:g}")
        return f"cast({', '.join(parts)})"


@dataclass(frozen=True)
class _Settled(Cast):
    """A cast that has seen the values: tensors of the names ``stay`` stay as they are. It reads as it was ``asked``."""

    stay: frozenset[str] = frozenset()
    asked: str = ""

    def _targets(self, stream: Stream) -> dict[str, DType | None]:
        found = super()._targets(stream)
        return found | dict.fromkeys(self.stay)

    def __str__(self) -> str:
        return self.asked


def _of(account: Account, step: Cast) -> list[tuple[CastKey, Lost]]:
    return [(key, lost) for key, lost in account.by_cast.items() if key.step == str(step)]


def _error(lost: Lost) -> float:
    """The largest relative error; there is none for what does not fit at all."""
    if lost.overflow or lost.nan:
        return math.inf
    return lost.detail.max_rel_error if lost.detail is not None else 0.0


class _Exception:
    """``GLOB`` or ``GLOB=DTYPE``: which tensors fare otherwise, and how; ``dtype`` is None for "as they are"."""

    def __init__(self, text: str) -> None:
        self.pattern, _, name = text.partition("=")
        self.dtype = dtypes.dtype(name) if "=" in text else None
        if not self.pattern or "'" in text:
            raise UsageError(
                f"keep: {text!r} is no pattern", remedy="write GLOB or GLOB=DTYPE, with ? for a quote", step="cast"
            )

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)

    def __str__(self) -> str:
        return self.pattern if self.dtype is None else f"{self.pattern}={self.dtype}"


def _refuse_vanishing(spec: Spec, target: DType, kind: str) -> None:
    """Refuse a truncation of floats that would leave next to nothing, which nobody can have meant."""
    if kind == "weights" and not is_floating(target):
        raise TconvError(
            f"as {target}, float weights would be little else than 0",
            remedy="integer weights need a scale beside them, which is quantization and no cast",
        )
    if target.is_integer and spec.range is not None and spec.range[0] >= -1 and spec.range[1] <= 1:
        low, high = spec.range
        raise TconvError(
            f"as {target}, values in [{low:g}, {high:g}] would be little else than 0",
            remedy=f"scale({target}) maps their range onto that of the integers",
        )


def _rounded(known: Range | None, target: DType, on_overflow: str) -> Range | None:
    """The range of the results: rounding keeps the order of values, so its bounds are those of before, rounded."""
    if known is None or target.kind == "complex":
        return known
    if on_overflow == "inf" and not target.min <= known[0] <= known[1] <= target.max:
        return None
    bounds, _ = casts.cast(np.array(known, np.float64), target, src=FLOAT64, on_overflow="saturate")
    low, high = bounds.astype(np.float64).tolist()
    return (0, 1) if target.kind == "bool" else (low, high)


def _last_cast(tensor: Tensor, step: Cast) -> CastTo | None:
    """The rounding that ``step`` added, if it did."""
    op = tensor.ops[-1] if tensor.ops else None
    return op if isinstance(op, CastTo) and op.step == str(step) else None
