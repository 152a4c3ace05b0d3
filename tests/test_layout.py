"""The code keeps to its rooms: imports flow one way, heavy libraries stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tconv"

# Every layer may import itself and what stands above it here, nothing below.
LAYERS = [
    ["errors"],
    ["impostors", "suggest", "vocabulary", "small_files", "hashing"],
    ["dtypes", "grammar", "opencv", "parameters"],
    ["lost"],
    ["account"],
    ["ops", "tensor"],
    ["scratch", "channels"],
    ["parts", "rows", "memory", "training", "trees"],
    ["beside"],
    ["casts"],
    ["quant"],
    ["registry"],
    ["formats", "steps"],
    ["fuse"],
    ["blocks", "outcome"],
    ["evaluate"],
    ["runner", "staging", "inputs", "pipeline", "selection"],
    ["targets", "request"],
    ["batches", "scan", "sharding"],
    ["measure"],
    ["recipes", "fold", "pictures"],
    ["planner"],
    ["diagnose", "pooled", "report", "resume", "verify"],
    ["calibrated"],
    ["job", "models"],
    ["cli"],
    ["__main__"],
]


def room(module: str) -> str:
    """``tconv.formats.npy`` is in the room ``formats``."""
    return module.split(".")[1]


def imports() -> list[tuple[str, str]]:
    """(importing module, imported tconv module), those inside functions and type checks too."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.Import):
                found += [(name, alias.name) for alias in node.names if alias.name.startswith("tconv.")]
            elif isinstance(node, ast.ImportFrom) and node.module == "tconv":
                found += [(name, f"tconv.{alias.name}") for alias in node.names if alias.name != "__version__"]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tconv."):
                found.append((name, str(node.module)))
    return found


def test_every_module_has_its_place() -> None:
    rooms = {room(f"tconv.{'.'.join(p.relative_to(PACKAGE).with_suffix('').parts)}") for p in PACKAGE.rglob("*.py")}
    assert rooms - {"__init__"} == {name for layer in LAYERS for name in layer}


# A tensor carries operations and an operation maps specs: for the type checker the two know each other.
MUTUAL = {("ops", "tensor"), ("tensor", "ops")}


def test_imports_flow_one_way() -> None:
    rank = {name: n for n, layer in enumerate(LAYERS) for name in layer}
    wrong = [
        f"{a} imports {b}"
        for a, b in imports()
        if room(a) != room(b) and (room(a), room(b)) not in MUTUAL and rank[room(a)] <= rank[room(b)]
    ]
    assert not wrong


# What runs a framework because that is its subject. Nothing imports it but by name, when a user asks for it.
FRAMEWORKS = {"models/tflite.py": {"tensorflow"}, "models/pt2e.py": {"torch"}}


def test_no_framework_is_imported_anywhere_else() -> None:
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf8"))
        names = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        names |= {
            (n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level
        }
        allowed = FRAMEWORKS.get(path.relative_to(PACKAGE).as_posix(), set())
        assert not names & {"torch", "tensorflow", "torchvision", "jax"} - allowed, path


def test_who_runs_a_framework_is_imported_by_name_only() -> None:
    modules = {f"tconv.{name.removesuffix('.py').replace('/', '.')}" for name in [*FRAMEWORKS, "models/onnx.py"]}
    assert not [f"{a} imports {b}" for a, b in imports() if b in modules]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import tconv", ["numpy", "cv2", "PIL", "typer", "torch", "tensorflow", "onnxruntime"]),
        ("from tconv.cli.app import run; run(['--help'])", ["numpy", "cv2", "PIL", "torch", "tensorflow", "yaml"]),
        ("from tconv.cli.app import run; run(['quantize-model', '--help'])", ["numpy", "onnx", "onnxruntime", "torch"]),
        ("from tconv.cli.app import run; run(['convert', '--help'])", ["numpy", "cv2", "PIL", "torch", "tensorflow"]),
    ],
)
def test_what_is_not_needed_is_not_imported(code: str, absent: list[str]) -> None:
    tail = f"import sys; print(sorted(set({absent!r}) & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{tail}"], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_modules_say_what_they_are_for() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        if path.stat().st_size:
            assert ast.get_docstring(ast.parse(path.read_text(encoding="utf8"))), path
