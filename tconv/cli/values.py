"""The values of options, checked as they are taken: words and whole numbers; wrong ones in plain words."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tconv.errors import UsageError
from tconv.suggest import did_you_mean, listed


def one_of(*words: str) -> Callable[[Any, Any, Any], Any]:
    """The callback of an option that takes one of ``words``."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is not None and value not in words:
            raise UsageError(
                f"{param.opts[-1]} takes {listed(words)}, not {value!r}", remedy=did_you_mean(value, words)
            )
        return value

    return check


def whole(lowest: int, highest: int) -> Callable[[Any, Any, Any], Any]:
    """The callback of an option that takes a whole number in [lowest, highest]."""

    def check(ctx: Any, param: Any, value: Any) -> Any:
        if value is None:
            return None
        number = int(value) if re.fullmatch("[0-9]{1,18}", value) else -1
        if not lowest <= number <= highest:
            raise UsageError(f"{param.opts[-1]} takes a whole number from {lowest} to {highest:,}, not {value!r}")
        return number

    return check
