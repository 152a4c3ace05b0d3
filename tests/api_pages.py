"""Makes the pages of the API from its docstrings, and that of the guide: ``python -m tests.api_pages FOLDER``.

A warning is an error.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pdoc

import tconv
import tconv.loaders.tensorflow
import tconv.loaders.torch

GUIDE = Path(__file__).resolve().parents[1] / "DTYPES.md"
MODULES = ("tconv", r"!tconv\..*", "tconv.loaders")


def make(folder: Path) -> None:
    """HTML pages below ``folder``, from ``index.html`` on, and ``guide.html``: which dtype for what."""
    for name in tconv.__all__:
        getattr(tconv, name)  # pdoc looks into the module, where a name lies from its first use on
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A TypedDict remembers no bases: of inherited options pdoc cannot know that they come from ReadingOptions.
        warnings.filterwarnings("ignore", r"Cannot determine where tconv\.Options\.\w+ is taken from")
        pdoc.render.configure(docformat="markdown", footer_text=f"tconv {tconv.__version__}")
        pdoc.pdoc(*MODULES, output_directory=folder)
        text = pdoc.render_helpers.to_html(GUIDE.read_text(encoding="utf8"))
    page = f'<!doctype html>\n<meta charset="utf-8">\n<title>Which dtype for what</title>\n{text}\n'
    (folder / "guide.html").write_text(page, encoding="utf8")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
