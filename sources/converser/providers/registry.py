# SPDX-License-Identifier: Apache-2.0
"""Who makes a provider of which name: ours, and those that other packages add by entry points."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ..exceptions import ConverserFailure, ModelFailure
from ..invokers import describe_failure
from ..naming import suggest_name
from ..turns import Provider

GROUP = "converser.providers"
"""The group of entry points: each names what takes a model's name, and options, and gives a provider."""

OURS = {
    "anthropic": "anthropic:create_provider",
    "embedded": "embedded:EmbeddedProvider",
    "google": "google:create_provider",
    "llamacpp": "openai:create_llamacpp_provider",
    "lmstudio": "openai:create_lmstudio_provider",
    "ollama": "openai:create_ollama_provider",
    "openai": "openai:create_provider",
}
"""Ours, by room and function; nobody else can take these names."""

_FAMILIES = {"claude": "anthropic", "gemini": "google", "gpt": "openai", "chatgpt": "openai"}
"""Whose models have names that begin so."""

Factory = Callable[..., Provider]


def find_factory(name: str) -> Factory:
    """What makes the provider of this name; it is imported only now."""
    if name in OURS:
        room, _, function = OURS[name].partition(":")
        factory: Factory = getattr(import_module(f".{room}", __package__), function)
        return factory
    others = list_others()
    if name not in others:
        raise ModelFailure(
            f"There is no provider {name!r}.",
            remedy=f"{_suggest_provider(name, [*OURS, *others])} A model is named PROVIDER:MODEL;"
            " one of any server that speaks Chat Completions openai:MODEL, with base_url=….",
        )
    try:
        loaded: Factory = others[name].load()
    except Exception as failure:  # Another's package may do anything while it is imported.
        raise ModelFailure(
            f"The provider {name!r} ({others[name].value}) cannot be imported:"
            f" {type(failure).__name__}.",
            remedy="Repair or remove the package that brings it.",
        ) from failure
    return loaded


def _suggest_provider(name: str, known: list[str]) -> str:
    """What may be meant by what is no provider: often it is a model, or both with a slash between."""
    provider, _, model = name.partition("/")
    if model and provider in known:
        return f"Did you mean '{provider}:{model}'?"
    family = next((each for each in _FAMILIES if name.lower().startswith(each)), "")
    if not family:
        return suggest_name(name.strip().lower(), known)
    meant = _FAMILIES[family]
    return f"Did you mean {meant if name.lower() == family else f'{meant}:{name}'!r}?"


def list_others() -> Mapping[str, EntryPoint]:
    """The providers that other packages bring."""
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in OURS}


def create_provider(name: str, model: str, options: Mapping[str, Any]) -> Provider:
    """A provider, if it knows all of the options."""
    create = find_factory(name)
    parameters = inspect.signature(create).parameters
    known = [key for key in parameters if key != "model"]
    is_open = any(part.kind is part.VAR_KEYWORD for part in parameters.values())
    if not is_open and (strange := sorted(set(options) - set(known))):
        raise ModelFailure(
            f"The provider {name!r} does not know the option {strange[0]!r}.",
            remedy=f"It knows: {', '.join(known)}.",
        )
    try:
        return create(model, **options)
    except ConverserFailure:
        raise
    except Exception as failure:
        raise ModelFailure(
            f"The provider {name!r} cannot be made: {describe_failure(failure)}.",
            remedy=f"Check its options: {', '.join(known)}.",
        ) from failure
