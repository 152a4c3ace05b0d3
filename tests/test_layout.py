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
    ["impostors", "notes", "suggest", "vocabulary", "small_files", "hashing"],
    ["replacing", "sizes", "table", "yaml_text", "patterns"],
    ["dtypes", "grammar", "opencv", "parameters", "values", "variables"],
    ["arguments"],
    ["lost"],
    ["account"],
    ["ops", "tensor"],
    ["step", "writer"],
    ["scratch", "channels", "trees"],
    ["parts", "rows", "memory", "training", "twins"],
    ["beside"],
    ["casts"],
    ["quant"],
    ["arrays"],
    ["plugins"],
    ["registry"],
    ["checkpoint_files", "devices", "folders"],
    ["formats", "speeds", "steps"],
    ["label_file"],
    ["fuse"],
    ["placed"],
    ["blocks", "outcome"],
    ["evaluate"],
    ["tasks"],
    ["runner", "staging", "inputs", "pipeline", "selection"],
    ["targets", "clearance", "journal", "request", "labels"],
    ["label_matching"],
    ["batches", "scan", "settings", "sharding", "labelling", "superseded", "tying"],
    ["measure"],
    ["intake", "recipe_steps", "walk"],
    ["recipes", "spelling", "fold", "pictures"],
    ["chain"],
    ["planner", "schema"],
    ["explain"],
    ["crossings"],
    ["plan_text"],
    ["readable"],
    ["diagnose", "losses", "pooled", "report", "resume", "verify"],
    ["interrupted"],
    ["calibrated"],
    ["job", "models"],
    ["api", "loaders"],
    ["cli"],
    ["__main__"],
]


def room(module: str) -> str:
    """``tconv.formats.npy`` is in the room ``formats``."""
    return module.split(".")[1]


def imports() -> list[tuple[str, str]]:
    """(importing module, imported tconv module), those inside functions and type checks too."""
    found = []
    for path in {*PACKAGE.rglob("*.py")} - {PACKAGE / "__init__.py"}:  # which hands out the names of others
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


# The modules that are about a framework; they are imported when one of its tensors comes, or is asked for.
FRAMEWORKS = {
    "tconv.arrays.of_jax": {"jax"},
    "tconv.arrays.of_tensorflow": {"tensorflow"},
    "tconv.arrays.of_torch": {"torch"},
    "tconv.devices.bits": {"torch"},
    "tconv.devices.lane": {"torch"},
    "tconv.devices.lookup": {"torch"},
    "tconv.devices.nvjpeg": {"torch", "torchvision"},
    "tconv.devices.rounding": {"torch"},
    "tconv.devices.speed": {"torch"},
    "tconv.devices.there": {"torch"},
    "tconv.loaders.tensorflow": {"tensorflow"},
    "tconv.loaders.torch": {"torch"},
    "tconv.models.pt2e": {"torch"},
    "tconv.models.tflite": {"tensorflow"},
    "tconv.placed.work": {"torch"},
}


def run_time_imports(tree: ast.AST, *, functions: bool = True) -> set[str]:
    """The modules that code imports, but for those that only a type checker looks at, or ``functions`` when called."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        return set()
    if isinstance(tree, ast.FunctionDef) and not functions:
        return set()
    if isinstance(tree, ast.Import):
        return {alias.name for alias in tree.names}
    if isinstance(tree, ast.ImportFrom):
        return {str(tree.module), *(f"{tree.module}.{alias.name}" for alias in tree.names)}
    return {name for part in ast.iter_child_nodes(tree) for name in run_time_imports(part, functions=functions)}


def test_a_framework_is_imported_where_it_is_meant_to_be_only() -> None:
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf8"))
        tops = {name.split(".")[0] for name in run_time_imports(tree)}
        frameworks = tops & {"torch", "tensorflow", "torchvision", "jax"}
        assert frameworks == FRAMEWORKS.get(module, set()), path
        at_once = run_time_imports(tree, functions=False)
        assert module in FRAMEWORKS or not at_once & FRAMEWORKS.keys(), path


def test_who_runs_models_is_imported_by_name_only() -> None:
    modules = {"tconv.models.pt2e", "tconv.models.tflite", "tconv.models.onnx"}
    assert not [f"{a} imports {b}" for a, b in imports() if b in modules]


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import tconv", ["numpy", "cv2", "PIL", "typer", "torch", "tensorflow", "onnxruntime"]),
        ("import tconv; tconv.loaders", ["numpy", "torch", "tensorflow"]),
        ("import tconv; [getattr(tconv, name) for name in tconv.__all__]", ["cv2", "torch", "tensorflow", "typer"]),
        ("import numpy, tconv; tconv.cast(numpy.ones(3), 'half')", ["torch", "tensorflow", "jax", "typer"]),
        ("from tconv.cli.app import run; run(['--help'])", ["numpy", "cv2", "PIL", "torch", "tensorflow", "yaml"]),
        ("from tconv.cli.app import run; run(['quantize-model', '--help'])", ["numpy", "onnx", "onnxruntime", "torch"]),
        ("from tconv.cli.app import run; run(['convert', '--help'])", ["numpy", "cv2", "PIL", "torch", "tensorflow"]),
        ("from tconv.cli.app import run; run(['convert', '--help'])", ["tconv.cli.check", "tconv.cli.stats"]),
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
