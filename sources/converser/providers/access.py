# SPDX-License-Identifier: Apache-2.0
"""From a name, or from `[model]` and `[provider.NAME]` of a configuration, to a provider."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from ..exceptions import ConfigurationFailure, ModelFailure
from ..immutables import EMPTY
from ..turns import Provider
from .automatic import CLOUDS, Chooser
from .registry import OURS, create_provider

if TYPE_CHECKING:
    from ..configuration import Configuration

AUTOMATIC = "auto"
Report = Callable[[str], None]
"""Hears, in sentences for people, which model was taken and why, and what is fetched for it."""


def access_provider(
    name: str | None,
    options: Mapping[str, Any],
    *,
    configuration: Configuration | None = None,
    report: Report | None = None,
) -> tuple[Provider, str]:
    """The provider, and why it was taken."""
    tables = configuration.tables if configuration else EMPTY
    wanted: dict[str, Any] = {}
    if name is None:
        wanted = dict(_get_table(tables, "model"))
        name = str(wanted.pop("name", AUTOMATIC))
    providers = _get_table(tables, "provider")
    provider, _, model = name.partition(":")
    reason = f"{name} was asked for."
    if provider == AUTOMATIC:
        choice = _prepare_choice(configuration, providers).choose()
        provider, model, reason = choice.provider, choice.model, choice.reason
        (report or _write_to_stderr)(f"Model: {reason}")
    table = dict(_get_table(providers, provider))
    usual_model, kind = str(table.pop("model", "")), str(table.pop("type", provider))
    settled = {**_resolve(configuration, provider, {**table, **wanted}), **options}
    if report is not None and kind == "embedded":
        settled["report"] = report
    model = model or usual_model or _find_usual_model(kind, settled)
    if not model and kind in OURS and kind != "embedded":
        raise ModelFailure(
            f"The provider {provider!r} was given no model.",
            remedy=f"Name one, such as {provider}:NAME; or set `model` in [provider.{provider}].",
        )
    return create_provider(kind, model, settled), reason


def _find_usual_model(kind: str, options: Mapping[str, Any]) -> str:
    """The model of a service that is taken where none is named; other servers have others."""
    if "base_url" in options:
        return ""
    return next((cloud.model for cloud in CLOUDS if cloud.provider == kind), "")


def _get_table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = tables.get(key, EMPTY)
    if not isinstance(table, Mapping):
        raise ModelFailure(
            f"In the configuration, {key!r} is not a table.", remedy=f"Write it as [{key}] …"
        )
    return cast("Mapping[str, Any]", table)


def _prepare_choice(configuration: Configuration | None, providers: Mapping[str, Any]) -> Chooser:
    """A choice among providers with addresses that can be tried; a key that cannot be found is none."""
    chooser = Chooser(tables={})
    for name in providers:
        table = dict(_get_table(providers, name))
        for key in ("base_url", "key"):
            if key in table:
                value = table.pop(key)
                try:
                    table.update(_resolve(configuration, name, {key: value}))
                except ConfigurationFailure as failure:
                    chooser.remarks.append(failure.message)
        chooser.tables = {**chooser.tables, name: table}
    return chooser


def _resolve(
    configuration: Configuration | None, provider: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options with what `env:NAME` and `file:PATH` stand for; files are sought beside the first file."""
    if configuration is None:
        return dict(options)
    from ..configuration.values import resolve_value

    folder = configuration.files[0].path.parent if configuration.files else None
    return {
        key: resolve_value(value, folder=folder, key=f"provider.{provider}.{key}")
        if isinstance(value, str)
        else value
        for key, value in options.items()
    }


def _write_to_stderr(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
