"""Programs of torch.export: torchao is fed what the pipeline makes, and no pickle in a program is run."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tconv.errors import TconvError, UsageError
from tconv.models.route import How, route_for
from tconv.models.samples import Batches
from tconv.tensor import Tensor
from tests.cli.conftest import Ran
from tests.memory import tensor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # exporting takes seconds, and warns

Tconv = Callable[..., Ran]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """image (any, 3, 16, 16) to ten logits."""
    pytest.importorskip("torchao", reason="torchao quantizes them: pip install 'tconv[pt2e]'")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(4), torch.nn.Flatten(),
        torch.nn.Linear(512, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
    ).eval()  # fmt: skip
    path = tmp_path_factory.mktemp("torch") / "net.pt2"
    program = torch.export.export(net, (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: torch.export.Dim("N")},))
    torch.export.save(program, path)
    return path


def samples(count: int, seed: int = 0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [tensor(rng.uniform(0, 1, (3, 16, 16)).astype(np.float32), f"{n}.png", axes="CHW") for n in range(count)]


def test_what_a_model_takes(model: Path) -> None:
    wanted = route_for(model, 1).wanted
    assert (wanted.shape, wanted.dtype) == ((None, 3, 16, 16), "float32")


@pytest.mark.parametrize("size", [1, 8])
def test_a_program_of_int8_weights_that_takes_any_batch(model: Path, tmp_path: Path, size: int) -> None:
    route, out = route_for(model, 1), tmp_path / "q.pt2"
    route.quantize(Batches(samples(40), size, 2), How(), out)
    made = torch.export.load(out)
    kinds = [x.dtype for x in made.state_dict.values() if x.ndim > 1]
    assert kinds == [torch.int8] * 3  # and no floats that they were made of
    run, x = route.reopened(out), Batches(samples(5, seed=1), 5, 2)[0]
    before, after = route.run(x)["output"], run(x)["output"]
    assert 20 < 10 * np.log10(np.square(before).sum() / np.square(after - before).sum()) < 80
    assert run(x[:1])["output"].shape == (1, 10)


def test_the_whole_command(tconv: Tconv, model: Path) -> None:
    np.save("x.npy", np.random.default_rng(0).uniform(0, 1, (60, 3, 16, 16)).astype(np.float32))
    ran = tconv("quantize-model", model, "--calibrate", "x.npy", "-o", "q.pt2", "--json")
    assert ran.code == 0
    found = json.loads(ran.out)
    assert found["bytes"]["after"] < found["bytes"]["before"]
    assert found["outputs"]["output"]["samples"] == 12
    assert {p.name for p in Path().iterdir()} == {"x.npy", "q.pt2"}


class _Attack:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("attacked"),))


def test_no_pickle_in_a_program_is_run(tconv: Tconv, model: Path) -> None:
    torch.save(({"x": _Attack()}, {}), "evil.bin")
    evil = Path("evil.bin").read_bytes()
    replaced = 0
    with zipfile.ZipFile(model) as source, zipfile.ZipFile("evil.pt2", "w") as target:
        for name in source.namelist():
            data = source.read(name)
            is_pickle = data[:2] == b"PK" or b"data.pkl" in data
            target.writestr(name, evil if is_pickle else data)
            replaced += is_pickle
    assert replaced
    np.save("x.npy", np.zeros((60, 3, 16, 16), np.float32))
    ran = tconv("quantize-model", "evil.pt2", "--calibrate", "x.npy", "-o", "q.pt2")
    assert (ran.code, ran.out) == (1, "")
    assert "is no program that torch.export loads" in ran.err
    assert not Path("attacked").exists()


def test_choices_that_there_are_not(model: Path) -> None:
    for how in (How("entropy"), How(activations="int8"), How(per_channel=False), How(io="int8")):
        with pytest.raises(UsageError, match=r"is not for \.pt2"):
            route_for(model, 1).check(how)


def test_what_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("torchao", reason="it is torch that says so")
    (tmp_path / "x.pt2").write_bytes(b"PK\x03\x04garbage")
    with pytest.raises(TconvError, match=r"is no program that torch\.export loads"):
        route_for(tmp_path / "x.pt2", 1)


def exported(net: torch.nn.Module, count: int, size: torch.export.Dim | None, path: Path) -> Path:
    given = torch.zeros(count, 3, 8, 8)
    program = torch.export.export(net.eval(), (given,), dynamic_shapes=({0: size},) if size else None)
    torch.export.save(program, path)
    return path


def small() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4))


def tiny(count: int) -> list[Tensor]:
    rng = np.random.default_rng(1)
    return [tensor(rng.uniform(0, 1, (3, 8, 8)).astype(np.float32), f"{n}.png", axes="CHW") for n in range(count)]


@pytest.mark.parametrize(("least", "most", "batch"), [(1, 4, 4), (4, 16, 8), (12, 64, 12), (0, None, 8)])
def test_batches_are_of_as_many_samples_as_the_program_takes(
    tmp_path: Path, least: int, most: int | None, batch: int
) -> None:
    pytest.importorskip("torchao", reason="torchao quantizes them: pip install 'tconv[pt2e]'")
    size = torch.export.Dim("N", min=least, max=most)
    route = route_for(exported(small(), batch, size, tmp_path / "net.pt2"), 1)
    assert (route.wanted.batch, route.wanted.whole) == (batch, least > 1)
    out = tmp_path / "q.pt2"
    route.quantize(Batches(tiny(batch * 2), batch, 1), How(), out)
    assert route.reopened(out)(Batches(tiny(batch), batch, 1)[0])["output"].shape == (batch, 4)
    made = torch.export.load(out)
    ((low, high),) = [(bounds.lower, bounds.upper) for bounds in made.range_constraints.values()]
    assert (low, high) == ((least, most) if most else (0, high))


def test_the_file_holds_no_sample_and_is_the_same_in_every_run(model: Path, tmp_path: Path) -> None:
    made = []
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        out = tmp_path / str(n) / "q.pt2"
        route_for(model, 1).quantize(Batches(samples(10), 4, 1), How(), out)
        made.append(out.read_bytes())
    assert made[0] == made[1]
    assert torch.export.load(out).example_inputs is None
    sample = samples(1)[0].source.read(0, 100).tobytes()
    assert sample not in made[0]


def test_what_is_quantized_already_is_refused(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "q.pt2"
    route_for(model, 1).quantize(Batches(samples(10), 4, 1), How(), out)
    with pytest.raises(TconvError, match=r"q\.pt2: is quantized already: it has quantized_decomposed\."):
        route_for(out, 1)


def test_what_torch_cannot_run_is_no_traceback(model: Path) -> None:
    with pytest.raises(TconvError, match=r"net\.pt2: torch cannot run it: "):
        route_for(model, 1).run(np.zeros((2, 3, 7, 7), np.float32))
