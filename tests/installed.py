"""Packages as if they were installed, for tests: their modules, and the entry points that their metadata list."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

EntryPoints = Mapping[str, Mapping[str, str]]


def install(site: Path, name: str, points: EntryPoints, modules: Mapping[str, str] | None = None) -> Path:
    """The package ``name`` 1.0 in the folder ``site``, with modules by their source; what an installer leaves of one.

    Source: https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (f"[{group}]\n" + "".join(f"{n} = {v}\n" for n, v in rows.items()) for group, rows in points.items())
    (info / "entry_points.txt").write_text("\n".join(groups))
    for module, source in (modules or {}).items():
        (site / f"{module}.py").write_text(source)
    return site


def install_from(project: Path, site: Path, points: EntryPoints) -> Path:
    """The package of a project whose modules lie in one folder, which is called like it."""
    name = project.name
    shutil.copytree(project, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    return install(site, name.replace("_", "-"), points)
