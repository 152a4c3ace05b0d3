"""Exact casts between all dtypes: correctly rounded once, with an account of what each lost."""

from tconv.casts.exact import POLICIES, Lost, cast, check_pair, check_policy

__all__ = ["POLICIES", "Lost", "cast", "check_pair", "check_policy"]
