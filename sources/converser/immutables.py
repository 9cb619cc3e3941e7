# SPDX-License-Identifier: Apache-2.0
"""Deeply immutable JSON data that still is a `dict` or a `list` to every serialiser and validator."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NoReturn, TypeVar

_T = TypeVar("_T")


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} is immutable. Build a changed copy from `dict(…)` or `list(…)` instead."
    )


class FrozenDictionary(dict[str, Any]):
    """A JSON object that cannot be changed, and can be hashed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDictionary:
        return self

    def __deepcopy__(self, _: object) -> FrozenDictionary:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDictionary, (dict(self),))


class FrozenList(list[Any]):
    """A JSON array that cannot be changed, and can be hashed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, _: object) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))


EMPTY = FrozenDictionary()


_KEPT = frozenset({str, int, float, bool, type(None), FrozenDictionary, FrozenList})
_set_item = dict[str, Any].__setitem__


def freeze(value: Any) -> Any:
    """Copies JSON data into immutable containers; scalars and frozen containers stay as they are."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        frozen = FrozenDictionary(value)
        for key, item in frozen.items():
            if type(item) not in _KEPT:
                _set_item(frozen, key, freeze(item))
        return frozen
    if kind is list:
        return FrozenList([item if type(item) in _KEPT else freeze(item) for item in value])
    if kind in _KEPT:
        return value
    if isinstance(value, Mapping):
        return freeze(dict(value))  # pyright: ignore[reportUnknownArgumentType]
    return freeze(list(value)) if isinstance(value, (list, tuple)) else value  # pyright: ignore[reportUnknownArgumentType]


def freeze_at_sight(kind: type, name: str) -> Callable[[Any], Any]:
    """Has a field of a slotted class frozen when somebody first looks at it; gives a way to peek.

    Thousands of tools have schemas, and few of those are ever looked at.
    """
    slot: Any = kind.__dict__[name]

    def look(owner: Any) -> Any:
        value = slot.__get__(owner)
        if type(value) is dict:
            value = freeze(value)
            slot.__set__(owner, value)
        return value

    setattr(kind, name, property(look, slot.__set__))
    peek: Callable[[Any], Any] = slot.__get__
    return peek


def admit_json(value: Any) -> Any:
    """JSON data, frozen, with words for numbers that JSON cannot hold; a `TypeError` tells what else it cannot hold."""
    value = freeze(value)
    pending, is_tame = [value], True
    for item in pending:
        if isinstance(item, dict):
            pending.extend(item.values())  # pyright: ignore[reportUnknownArgumentType]
            if not all(isinstance(key, str) for key in item):  # pyright: ignore[reportUnknownVariableType]
                raise TypeError("JSON has no names of properties that are not text")
        elif isinstance(item, list):
            pending.extend(item)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(item, float):
            is_tame = is_tame and isfinite(item)
        elif item is not None and not isinstance(item, (str, int)):
            raise TypeError(f"JSON cannot hold a value of type {type(item).__name__}")
    return value if is_tame else _tame(value)


def _tame(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tame(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_tame(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(value) if isinstance(value, float) and not isfinite(value) else value


def thaw(value: Any) -> Any:
    """Copies frozen data into plain containers, for callers who want to change it."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [thaw(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return value
