# SPDX-License-Identifier: Apache-2.0
"""Which of some names a model would write next, and how likely each is.

A model that just writes commits itself with the first letters of a name: once it has begun with `git_branch`, it cannot
come back for `git_create_branch`. So the names are weighed as wholes: a walk along their letters asks for the likely
next pieces, and follows the likeliest way first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

Weigh = Callable[[str], Awaitable[Mapping[str, float]]]
"""Gives the likely next pieces of text after a beginning, with the logarithm of how likely each is."""

_END = '"'
_UNLIKELY = -12.0
_WORST = -7.0


async def rank_names(weigh: Weigh, names: Iterable[str], most: int) -> dict[str, float]:
    """The likeliest names, the best first, with the logarithms of their shares."""
    ends = {f"{name}{_END}": name for name in names}
    paths: list[tuple[float, str]] = [(0.0, "")]
    passed: set[str] = set()
    found: dict[str, float] = {}
    while paths and len(found) < most:
        cost, path = heapq.heappop(paths)
        if path in passed:
            continue
        passed.add(path)
        ways = [end for end in ends if end.startswith(path)]
        if path in ends:
            found[ends[path]] = -cost
        elif len(ways) == 1:
            heapq.heappush(paths, (cost, ways[0]))
        else:
            for longer, share in _share(path, ways, await weigh(path)).items():
                heapq.heappush(paths, (cost - share, longer))
    return found


def _share(path: str, ways: Sequence[str], pieces: Mapping[str, float]) -> dict[str, float]:
    """How the likelihood of a path is shared among its continuations."""
    shares: dict[str, float] = {}
    for piece, weight in pieces.items():
        longer = f"{path}{piece}"
        whole = [way for way in ways if longer.startswith(way)]  # a piece may reach beyond the end
        if piece and (whole or any(way.startswith(longer) for way in ways)):
            target = whole[0] if whole else longer
            shares[target] = shares.get(target, 0.0) + math.exp(weight)
    total = sum(shares.values())
    known = {target: math.log(share / total) for target, share in shares.items() if share}
    strays = [way for way in ways if not any(way.startswith(target) for target in known)]
    return {**dict.fromkeys(strays, _UNLIKELY), **known}


def average(rankings: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The ranks of all names in several rankings: whoever is good in each beats the favourite of one alone.

    None can be worse than bad in one, since each ranking is quite wrong at times.
    """
    names = dict.fromkeys(name for ranks in rankings for name in ranks)
    return {
        name: sum(max(ranks.get(name, _WORST), _WORST) for ranks in rankings) / len(rankings)
        for name in names
    }
