"""A verb of the command line: its help in groups, its values taken as text and checked in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import zip_longest
from typing import Any

from typer.core import TyperCommand

from tconv.errors import UsageError

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
_TIMES = {2: "twice"}
_ONCE = "it takes one value: leave the others out"
MAY_BE_EMPTY = "fields"  # where it stands for "none of them"


class Verb(TyperCommand):
    """A command whose options stand in groups in its help, and whose values Typer leaves alone.

    Typer would check them with pydantic, whose import takes longer than a small conversion does and whose errors talk
    of types. Text stays text here, and the callback of an option makes of it what it stands for.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        params = self.get_params(ctx)
        take_as_typed(params)
        words = _completed(params, args)
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(args=list(words))
            _refuse_twice(order)
        return super().parse_args(ctx, words)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        names = [_names(param) for param in self.params if not _is_option(param)]
        formatter.write_usage(ctx.command_path, " ".join([*names, "[OPTIONS]"]))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            shown: Any = param
            if not shown.hidden:
                title = shown.rich_help_panel or ("Options" if _is_option(shown) else "Arguments")
                groups.setdefault(title, []).append((_names(shown), shown.help or ""))
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _is_option(param: Any) -> bool:
    return bool(param.param_type_name == "option")


def _names(param: Any) -> str:
    """``-o, --output PATH``; an argument is called by what stands for it, and dots if there may be several."""
    if not _is_option(param):
        return f"{_metavar(param)}{'...' if param.nargs == -1 else ''}"
    names = ", ".join(sorted(param.opts, key=lambda name: name.startswith("--")))
    return names if param.is_flag else f"{names} {_metavar(param)}"


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper())


def _completed(params: Iterable[Any], args: list[str]) -> list[str]:
    """The words with the 0 that an option stands for without a value, if its value is in brackets in the help. It takes
    the next word for one only if that is a number: ``--pad images`` names a folder.
    """
    optional = {name for param in params if str(param.metavar).startswith("[") for name in param.opts}
    made: list[str] = []
    for word, after in zip_longest(args, args[1:], fillvalue=""):
        made += [word, "0"] if word in optional and not _NUMBER.fullmatch(after) else [word]
    return made


def _refuse_twice(given: Iterable[Any]) -> None:
    """Refuse options of one value that are there more than once, of which all but the last would count for nothing."""
    counted = Counter(param for param in given if _is_option(param) and not (param.multiple or param.is_flag))
    for param, count in counted.items():
        if count > 1:
            raise UsageError(f"{max(param.opts, key=len)} is given {_TIMES.get(count, f'{count} times')}", remedy=_ONCE)


def take_as_typed(params: Iterable[Any]) -> None:
    """Keep Typer from checking what was not given, what is text, and what a callback looks at."""
    for param in params:
        param.process_value = partial(_as_typed, param, param.process_value)


def _as_typed(param: Any, checked_by_typer: Any, ctx: Any, value: Any) -> Any:
    if param.required and value in (None, (), []):
        raise UsageError(f"{_metavar(param)} is missing", remedy=f"see {ctx.command_path} --help")
    if param.name != MAY_BE_EMPTY and "" in (value if isinstance(value, (list, tuple)) else (value,)):
        name = max(param.opts, key=len) if _is_option(param) else _metavar(param)
        raise UsageError(f"{name} is empty", remedy="a shell variable that is not set, perhaps")
    is_text = getattr(getattr(param, "type_descriptor", None), "annotation", None) in (str, list[str])
    if not (value is None or isinstance(value, bool) or is_text or param.callback):
        return checked_by_typer(ctx, value)
    return param.callback(ctx, param, value) if param.callback else value
