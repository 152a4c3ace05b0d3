"""cast: to another dtype, rounded once, with an account of what does not fit and exceptions that stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tconv import casts, dtypes
from tconv.errors import TconvError, UsageError
from tconv.ops import CastTo
from tconv.parts import Parts
from tconv.step import Rules, Step
from tconv.steps.alike import once_a_kind
from tconv.steps.clamp import number
from tconv.steps.exceptions import Exempt
from tconv.steps.norms import normalization
from tconv.steps.touch import is_floating, on_touched

if TYPE_CHECKING:
    from tconv.account import CastKey
    from tconv.dtypes import DType
    from tconv.lost import Lost
    from tconv.step import Scan
    from tconv.tensor import Range, Spec, Stream, Tensor

ON_OVERFLOW = ("error", "saturate", "inf", "keep")
POLICIES = ("amp",)
FLOAT32, FLOAT64 = dtypes.dtype("float32"), dtypes.dtype("float64")
TRIED = "cast, to see what it loses"  # the text of no step: by it the account of the cast that is tried is known
KEPT = "kept"  # the attribute of a tensor that says why a cast left it as it is


class _Fate(NamedTuple):
    """What becomes of a tensor: its dtype, None for that which it has, and why if it is not that of all."""

    dtype: DType | None
    why: str = ""


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
    heeds: ClassVar[frozenset[str]] = frozenset(("on_overflow", "keep", "policy", "max_error"))
    usage: ClassVar[str] = (
        "cast(float16), cast(uint8, on_overflow=saturate), cast(half, keep=['*.head.*', 'n*=float32'])"
    )
    choices: ClassVar[Mapping[str, Sequence[str]]] = {"on_overflow": ON_OVERFLOW, "policy": POLICIES}

    dtype: str
    on_overflow: str | None = None
    keep: tuple[str, ...] = ()
    policy: str | None = None
    max_error: float | None = None

    def __post_init__(self) -> None:
        target = dtypes.dtype(self.dtype)
        casts.check_policy(target, self._rounding)
        for exception in map(Exempt, self.keep):
            exception.check(self._rounding)
        if self.policy is not None and self.policy not in POLICIES:
            raise UsageError(
                f"there is no policy {self.policy!r}", remedy=f"there is {', '.join(POLICIES)}", step="cast"
            )
        if self.max_error is not None and not 0 <= self.max_error < float("inf"):
            raise UsageError(f"max_error is {self.max_error}; it must be 0 or more", step="cast")
        object.__setattr__(self, "dtype", target.name)
        object.__setattr__(self, "keep", tuple(str(Exempt(text)) for text in self.keep))

    @property
    def target(self) -> DType:
        return dtypes.dtype(self.dtype)

    @property
    def _rounding(self) -> str:
        """The policy for tensors that are cast: nothing overflows in them under "keep"."""
        return "error" if self.on_overflow in (None, "keep") else str(self.on_overflow)

    def heeding(self, rules: Rules) -> Cast:
        return replace(
            self,
            on_overflow=self.on_overflow or rules.on_overflow,
            keep=(*self.keep, *rules.keep),
            policy=self.policy or rules.policy,
            max_error=rules.max_error if self.max_error is None else self.max_error,
        )

    @property
    def needs_scan(self) -> bool:
        return self.on_overflow == "keep" or self.max_error is not None

    def fit(self, stream: Stream, scan: Scan) -> tuple[Cast, tuple[str, ...]]:
        """With the tensors that stay as they are because of their values."""
        pairs = [
            (before, made)
            for before, made in zip(stream.tensors, self.apply(stream).tensors, strict=True)
            if len(made.ops) > len(before.ops)
        ]
        accounts = scan([_tried(made) for _, made in pairs], self.max_error is not None)
        stay, notes = dict[str, str](), list[str]()
        for (tensor, _), account in zip(pairs, accounts, strict=True):
            tried = [(key, lost) for key, lost in account.by_cast.items() if key.step == TRIED]
            why = next(filter(None, (self._why(key, lost) for key, lost in tried)), "")
            if not why:
                continue
            name, file = tensor.spec.name, tensor.source.path
            if isinstance(tensor.source, Parts):
                option = "choose another --on-overflow" if self.on_overflow == "keep" else "allow a larger --max-error"
                raise TconvError(
                    f"a stack has one dtype, so no part of it can stay as it is; {why}",
                    remedy=f"{option}, or write each by itself without --stack",
                    tensor=name,
                    file=file,
                    step=str(self),
                )
            stays = f"stays {tensor.spec.dtype}: {why}"
            notes.append(str(TconvError(stays, file=file, tensor=name, step=str(self))))
            stay[name] = why
        plain = {"dtype": self.dtype, "on_overflow": self._rounding, "keep": self.keep, "policy": self.policy}
        return _Settled(**plain, stay=stay, asked=str(self)), tuple(notes)  # type: ignore[arg-type]  # fields of several types

    def _why(self, key: CastKey, lost: Lost) -> str:
        """Why a tensor that loses this is not cast, or nothing."""
        misfits = lost.bad("error")
        if misfits and (self.on_overflow == "keep" or self.max_error is not None):
            return lost.describe(key.src, key.dst)
        error = lost.detail.max_rel_error if lost.detail is not None else 0.0
        if self.max_error is not None and error > self.max_error:
            return f"a value would be off by {error:.2g} of itself, and {self.max_error:g} is allowed"
        return ""

    def apply(self, stream: Stream) -> Stream:
        kind = stream.extra.kind
        fates = self._fates(stream)
        inert = [t.spec.name for t in stream.tensors if fates[t.spec.name].dtype in (None, t.spec.dtype)]
        to = {fate: once_a_kind(partial(self._cast, fate=fate, kind=kind)) for fate in {*fates.values()}}
        made = on_touched(
            stream,
            self,
            lambda t: to[fates[t.spec.name]](t),
            all_fields=self.target.is_integer,
            complex_too=self.target.kind == "complex",
            inert=inert,
        )
        return made.with_tensors(made.tensors, *self._told(stream))

    def _fates(self, stream: Stream) -> dict[str, _Fate]:
        """What becomes of each tensor, by its name."""
        exceptions = [Exempt(text) for text in self.keep]
        norms = normalization(t.spec for t in stream.tensors) if self.policy == "amp" else set()
        fates: dict[str, _Fate] = {}
        for name in (t.spec.name for t in stream.tensors):
            found = next((e for e in exceptions if e.matches(name)), None)
            if found:
                fates[name] = _Fate(found.dtype, f"keep='{found}'")
            else:
                fates[name] = _Fate(FLOAT32, f"policy={self.policy}") if name in norms else _Fate(self.target)
        return fates

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

    def _cast(self, tensor: Tensor, fate: _Fate, kind: str) -> Tensor:
        spec, target = tensor.spec, fate.dtype
        if target is None or spec.dtype == target:
            return tensor if spec.dtype == self.target else _kept(tensor, fate.why)
        casts.check_pair(spec.dtype, target)
        if spec.dtype.is_float:
            _refuse_vanishing(spec, target, kind)
        policy = self._rounding
        attrs = spec.attrs
        if KEPT in attrs:
            attrs = {key: value for key, value in attrs.items() if key != KEPT}
        if self.needs_scan:
            attrs = {**attrs, "undecided": str(spec.dtype)}
        return tensor.then(
            CastTo(dtype=target, on_overflow=policy, step=str(self)),
            range=_rounded(spec.range, target, policy),
            attrs=attrs,
        )

    def __str__(self) -> str:
        parts = [self.dtype]
        if self.on_overflow is not None:
            parts.append(f"on_overflow={self.on_overflow}")
        if self.keep:
            parts.append("keep=[" + ", ".join(f"'{pattern}'" for pattern in self.keep) + "]")
        if self.policy is not None:
            parts.append(f"policy={self.policy}")
        if self.max_error is not None:
            parts.append(f"max_error={number(self.max_error)}")
        return f"cast({', '.join(parts)})"


@dataclass(frozen=True)
class _Settled(Cast):
    """A cast that has seen the values: ``stay`` has the names of tensors that stay as they are, and why each does. It
    reads as it was ``asked``.
    """

    stay: Mapping[str, str] = field(default_factory=dict)
    asked: str = ""

    def _fates(self, stream: Stream) -> dict[str, _Fate]:
        return super()._fates(stream) | {name: _Fate(None, why) for name, why in self.stay.items()}

    def __str__(self) -> str:
        return self.asked


def _tried(tensor: Tensor) -> Tensor:
    """The same with its last operation, the cast in question, marked: another one may have the same text."""
    *others, cast = tensor.ops
    assert isinstance(cast, CastTo)
    return replace(tensor, ops=(*others, replace(cast, step=TRIED)))


def _kept(tensor: Tensor, why: str) -> Tensor:
    return replace(tensor, spec=replace(tensor.spec, attrs={**tensor.spec.attrs, KEPT: why}))


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
            remedy=_scaled(target),
        )


def _scaled(target: DType) -> str:
    """How values within [-1, 1] become integers, by the steps there are."""
    if target.bits < 8:
        return (
            f"quantize({target}) stores them with a scale beside them, scale(uint8) maps their range onto that of bytes"
        )
    if target.bits > 32:
        narrow = f"{target.kind}32"
        return f"scale({narrow}) | cast({target}) maps their range onto that of {narrow}"
    return f"scale({target}) maps their range onto that of the integers"


def _rounded(known: Range | None, target: DType, on_overflow: str) -> Range | None:
    """The range of the results: rounding keeps the order of values, so its bounds are those of before, rounded."""
    if known is None or target.kind == "complex":
        return known
    if on_overflow == "inf" and not target.min <= known[0] <= known[1] <= target.max:
        return None
    bounds, _ = casts.cast(np.array(known, np.float64), target, src=FLOAT64, on_overflow="saturate")
    low, high = bounds.astype(np.float64).tolist()
    if target.is_float:  # a bound that the dtype lacks is one still: 65535 is white in float16 too
        low, high = (b if abs(b) > target.max else r for b, r in zip(known, (low, high), strict=True))
    return (0, 1) if target.kind == "bool" else (low, high)
