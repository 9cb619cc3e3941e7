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
from .failures import is_home
from .registry import OURS, create_provider, list_others

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
        name = _pop_name(wanted)
    providers = _get_table(tables, "provider")
    provider, _, model = name.partition(":")
    reason = f"{name} was asked for."
    if provider == AUTOMATIC:
        choice = _prepare_choice(configuration, providers).choose()
        provider, model, reason = choice.provider, choice.model, choice.reason
        (report or _write_to_stderr)(f"Model: {reason}")
    table = dict(_get_table(providers, provider, "provider."))
    usual_model, kind = str(table.pop("model", "")), _pop_kind(table, provider)
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
    if "base_url" in options and not is_home(kind, str(options["base_url"])):
        return ""
    return next((cloud.model for cloud in CLOUDS if cloud.provider == kind), "")


def _pop_name(wanted: dict[str, Any]) -> str:
    """The name of the model in `[model]`, which must not be lost by a slip there."""
    if wanted and "name" not in wanted:
        raise ModelFailure(
            f"In the configuration, [model] has {next(iter(wanted))!r}, but names no model.",
            remedy='Write name = "PROVIDER:MODEL", or name = "auto".',
        )
    return str(wanted.pop("name", AUTOMATIC))


def _pop_kind(table: dict[str, Any], provider: str) -> str:
    """What a provider is; a name of one's own does not say it."""
    kind = str(table.pop("type", provider))
    if table and kind == provider and kind not in OURS and kind not in list_others():
        raise ModelFailure(
            f"In the configuration, [provider.{provider}] does not say what it is.",
            remedy='Write type = "openai" for a server that speaks Chat Completions, or one of:'
            f" {', '.join(OURS)}.",
        )
    return kind


def _get_table(tables: Mapping[str, Any], key: str, within: str = "") -> Mapping[str, Any]:
    table = tables.get(key, EMPTY)
    if not isinstance(table, Mapping):
        place = within + key
        raise ModelFailure(
            f"In the configuration, {place!r} is not a table.", remedy=f"Write it as [{place}] …"
        )
    return cast("Mapping[str, Any]", table)


def _prepare_choice(configuration: Configuration | None, providers: Mapping[str, Any]) -> Chooser:
    """A choice among providers with addresses that can be tried; a key that cannot be found is none."""
    chooser = Chooser(tables={})
    for name in providers:
        table = dict(_get_table(providers, name, "provider."))
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
