"""Programs of torch.export (.pt2) by torchao's quantization of exported programs (PT2E), for its x86 backend."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tconv.errors import TconvError, UsageError
from tconv.models.quiet import hushed
from tconv.models.route import How, Route, theirs
from tconv.models.wanted import Wanted

with hushed():
    import torch
    from torch.utils import _pytree as pytree
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

if TYPE_CHECKING:
    from tconv.models.route import Run
    from tconv.models.samples import Batches
    from tconv.ops import Array


class Pt2eRoute(Route):
    """See ``Route``. The program is on the CPU, and has one output or several in a row."""

    suffix: ClassVar[str] = ".pt2"

    def __init__(self, path: Path, workers: int) -> None:
        self._path = path
        torch.set_num_threads(workers)
        self._program = _loaded(path, "is no program that torch.export loads", path)
        _refuse_quantized(self._program, path)
        self._module = self._program.module()

    def check(self, how: How) -> None:
        for option, given in (
            ("--method", how.method != "minmax"),
            ("--activations", how.activations),
            ("--per-tensor", not how.per_channel),
            ("--io", how.io),
        ):
            if given:
                raise UsageError(f"{option} is not for .pt2: torchao has its own way", remedy="leave it out")

    @property
    def files(self) -> Sequence[Path]:
        return [self._path]

    @property
    def wanted(self) -> Wanted:
        names = self._program.graph_signature.user_inputs
        if len(names) != 1:
            shown = ", ".join(map(str, names)) or "none"
            raise TconvError(f"it has {len(names)} inputs ({shown}), and samples are for just one", file=self._path)
        value = self._input
        shape = tuple(n if isinstance(n, int) else None for n in value.shape)
        least, most = self._sizes.get(0, (1, None))
        return Wanted(str(names[0]), shape, str(value.dtype).removeprefix("torch."), max(least, 1), most)

    @property
    def _input(self) -> Any:
        """What stands for the one input."""
        (name,) = self._program.graph_signature.user_inputs
        (node,) = [node for node in self._program.graph.nodes if node.name == name]
        return node.meta["val"]

    @property
    def _sizes(self) -> Mapping[int, tuple[int, int | None]]:
        """The least and the greatest length of each axis of the input that has no fixed one."""
        found = {}
        for axis, size in enumerate(self._input.shape):
            if not isinstance(size, int):
                bounds = self._program.range_constraints.get(size.node.expr)
                low, high = (0, None) if bounds is None else (bounds.lower, bounds.upper)
                found[axis] = int(low or 0), int(high) if high is not None and high.is_Integer else None
        return found

    def run(self, batch: Array) -> Mapping[str, Array]:
        return _run(self._module, batch, self._path)

    def quantize(self, batches: Batches, how: How, path: Path) -> None:
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
        try:
            with hushed(), torch.no_grad():
                observed = prepare_pt2e(self._program.module(), quantizer)
                for batch in batches:
                    observed(torch.from_numpy(batch))
                made = _without_what_is_not_used(convert_pt2e(observed))
                _save(made, torch.from_numpy(batches[0]), self.wanted, self._sizes, path)
        except (TconvError, OSError, MemoryError):
            raise
        except Exception as problem:  # of torch's many kinds
            raise theirs("torchao cannot quantize it", problem, self._path) from problem

    def reopened(self, path: Path) -> Run:
        module = _loaded(path, "what torchao made of it cannot be loaded", self._path).module()
        return lambda batch: _run(module, batch, self._path)


def _loaded(path: Path, what: str, model: Path) -> Any:
    """The program, of which no pickle is taken that holds more than tensors; ``what`` is said of ``model`` where there
    is none.
    """
    try:
        with hushed(), _tensors_only():
            return torch.export.load(path)
    except MemoryError:
        raise
    except Exception as problem:
        raise theirs(what, problem, model, staged=path) from problem


@contextlib.contextmanager
def _tensors_only() -> Iterator[None]:
    """torch.export.load would else take any pickle where one of mere tensors fails, and so run what is in it."""
    name = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _run(module: Any, batch: Array, path: Path) -> dict[str, Array]:
    try:
        with torch.no_grad():
            found = pytree.tree_leaves(module(torch.from_numpy(batch)))
        arrays = [values.numpy() for values in found]
    except MemoryError:
        raise
    except Exception as problem:  # of torch's many kinds
        raise theirs("torch cannot run it", problem, path) from problem
    names = ["output"] if len(found) == 1 else [f"output {n}" for n in range(len(found))]
    return dict(zip(names, arrays, strict=True))


def _without_what_is_not_used(module: Any) -> Any:
    """The converted module still has the floats that its int8 weights were made of; an export would keep them."""
    used = {node.target for node in module.graph.nodes if node.op == "get_attr"}
    for name in [name for name, _ in (*module.named_parameters(), *module.named_buffers()) if name not in used]:
        owner, _, leaf = name.rpartition(".")
        delattr(module.get_submodule(owner), leaf)
    return module


def _save(module: Any, example: Any, wanted: Wanted, sizes: Mapping[int, tuple[int, int | None]], path: Path) -> None:
    """What it is traced with says nothing of the samples, and is not kept; nor is what differs from run to run."""
    free = {n: torch.export.Dim(f"axis_{n}", min=low, max=high) for n, (low, high) in sizes.items()}
    if 0 in free:
        example = example[:1].expand(max(wanted.least, 2), *example.shape[1:])  # 1 would be taken for what is always so
    program = torch.export.export(module, (torch.zeros_like(example),), dynamic_shapes=(free,))
    program.example_inputs = None
    for part in program.graph_module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            node.meta.pop("from_node", None)  # it has addresses
    torch.export.save(program, path)


def _refuse_quantized(program: Any, path: Path) -> None:
    """Refuse a program with operators of quantization, which torchao would quantize once more."""
    for node in program.graph.nodes:
        if "quantize_per_" in str(node.target):
            raise TconvError(
                f"is quantized already: it has {node.target}",
                remedy="take the float program that it was made of",
                file=path,
            )
