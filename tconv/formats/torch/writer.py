"""Writes a checkpoint in the zip layout: a pickle of the structure, then one aligned member for each storage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.dtypes import DTYPES
from tconv.formats import order
from tconv.formats.crc import PiecewiseCrc32
from tconv.formats.flat import check_dtypes, check_names
from tconv.formats.mark import FRAMEWORK
from tconv.formats.positional import PositionalWriter
from tconv.formats.torch.objects import STORAGE_DTYPES, TORCH_DTYPES, UNTYPED, Named
from tconv.formats.torch.pickler import Call, Identity, Pickler
from tconv.formats.torch.sharing import View, parted, share
from tconv.formats.torch.tree import fit, with_order, with_texts
from tconv.formats.zip import directory, place
from tconv.tensor import Extra, Ref, Spec

if TYPE_CHECKING:
    from tconv.ops import Array

_FOLDER = "archive/"
_STORAGE_CLASSES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
_NAMEABLE = (TORCH_DTYPES & DTYPES.keys()) - {"int4", "uint4"}  # torch has these by name only, and no tensors of them


class TorchWriter(PositionalWriter):
    """Writes what ``torch.load`` reads, mapped and with ``weights_only=True`` unless the tree has what it refuses.

    The structure is ``extra.tree``: plain values are kept as they are, tensors that are no longer in it are listed
    in ``left_out``, those that it does not hold are put at its top, lists of texts too. Without a tree it is a dict by
    name. Tensors are
    written contiguous, and as tensors of the CPU unless ``attrs["saved_on"]`` names a device. Those that shared a
    storage and still have the same dtype share one again: the first writes it, and ``stored`` is False for the others.
    """

    holds_tree: ClassVar[bool] = True

    def __init__(self, specs: Sequence[Spec], extra: Extra) -> None:
        check_dtypes(specs, _NAMEABLE, ".pt")
        check_names(specs)
        self.specs = specs
        self._views = share(specs)
        self._numbers = {base: n for n, base in enumerate(sorted({v.base for v in self._views}))}
        self._index = {spec.name: i for i, spec in enumerate(specs)}
        tree = with_texts(fit(extra.tree, self._index), extra.texts)
        told = order.common(specs, () if order.said_in(tree) or isinstance(tree, Ref) else tree)
        self._small = {
            "data.pkl": Pickler(self._tensor).dump(with_order(tree, told)),
            "byteorder": b"little",
            "version": b"3\n",
        }
        self.left_out = (
            *(f"metadata {key!r}" for key in extra.metadata if key != FRAMEWORK),
            *(f"requires_grad of {s.name}" for s in specs if s.attrs.get("requires_grad") and not _requires_grad(s)),
            *(() if told else order.untold(specs)),
        )
        lost = parted(specs, self._views)
        if lost:
            self.notes = (f"shared bytes that none of them has all of, and are written whole: {', '.join(lost)}",)
        self._plan()

    @classmethod
    def holders(cls, specs: Sequence[Spec]) -> list[int]:
        return [view.base for view in share(specs)]

    def _plan(self) -> None:
        sizes = [(_FOLDER + name, len(data)) for name, data in self._small.items()]
        sizes += [(f"{_FOLDER}data/{n}", self.specs[base].nbytes) for base, n in self._numbers.items()]
        self._members = place(sizes)
        starts = [m.start for m in self._members[len(self._small) :]]
        self.offsets = [starts[self._numbers[v.base]] for v in self._views]
        self._checksums = [PiecewiseCrc32(self.specs[base].nbytes) for base in self._numbers]
        start, end = directory(self._members, [0] * len(self._members))
        self.size = start + len(end)

    def stored(self, i: int) -> bool:
        """Whether tensor ``i`` is to be written; the others are views of one that is."""
        return self._views[i].base == i

    def header(self) -> list[tuple[int, bytes]]:
        headers = [(m.header, m.local_header()) for m in self._members]
        return headers + [(m.start, data) for m, data in zip(self._members, self._small.values(), strict=False)]

    def write(self, i: int, lo: int, array: Array) -> None:
        """Does nothing for a tensor that is a view of another."""
        if not self.stored(i):
            return
        flat = array.reshape(-1).view("u1")
        self._checksums[self._numbers[i]].add(lo * self.specs[i].dtype.itemsize, flat.data)
        super().write(i, lo, array)

    def trailer(self) -> list[tuple[int, bytes]]:
        totals = [checksum.total for checksum in self._checksums]
        known = [zlib.crc32(data) for data in self._small.values()] + [total for total in totals if total is not None]
        assert len(known) == len(self._members), "a tensor was not written whole"
        patches = [(m.crc_offset, struct.pack("<I", crc)) for m, crc in zip(self._members, known, strict=True)]
        return [*patches, directory(self._members, known)]

    def _tensor(self, name: str) -> Call:
        """The call that makes the tensor of that name."""
        i = self._index[name]
        spec, view = self.specs[i], self._views[i]
        parameter, state, requires_grad = spec.attrs.get("parameter"), spec.attrs.get("state"), _requires_grad(spec)
        call = self._rebuild(spec, view, requires_grad and not parameter)
        if parameter and state:
            return Call("torch._utils._rebuild_parameter_with_state", (call, requires_grad, _NO_HOOKS, dict(state)))
        if parameter:
            return Call("torch._utils._rebuild_parameter", (call, requires_grad, _NO_HOOKS))
        if state:
            plain = (Named(call.path), Named("torch.Tensor"), call.args, dict(state))
            return Call("torch._tensor._rebuild_from_type_v2", plain)
        return call

    def _rebuild(self, spec: Spec, view: View, requires_grad: bool) -> Call:
        """Newer dtypes have no class of storages: theirs are bytes, and the dtype stands beside them."""
        kind = _STORAGE_CLASSES.get(spec.dtype)
        base = self.specs[view.base]
        storage, count = (f"torch.{kind}", base.size) if kind else (UNTYPED, base.nbytes)
        key = str(self._numbers[view.base])
        device = base.attrs.get("saved_on", "cpu")
        identity = Identity(("storage", Named(storage), key, device, count))
        args: tuple[Any, ...] = (identity, view.offset, spec.shape, view.stride, requires_grad, _NO_HOOKS)
        if kind:
            return Call("torch._utils._rebuild_tensor_v2", args)
        return Call("torch._utils._rebuild_tensor_v3", (*args, Named(f"torch.{spec.dtype}")))


def _requires_grad(spec: Spec) -> bool:
    """Whether torch can load it as one that does: if it has a fractional part, and is a parameter where its dtype has
    no class of storages (``_rebuild_tensor_v3`` fails on other tensors).
    """
    possible = spec.dtype.kind in ("float", "complex") and (
        spec.attrs.get("parameter") or spec.dtype in _STORAGE_CLASSES
    )
    return bool(spec.attrs.get("requires_grad") and possible)


_NO_HOOKS = Call("collections.OrderedDict")
