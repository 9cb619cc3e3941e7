# SPDX-License-Identifier: Apache-2.0
"""From options and configuration to a model and a roster of servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
from anyio.to_thread import run_sync

from ...configuration import Configuration
from ...exceptions import ModelFailure
from ...immutables import FrozenDictionary
from ..options import TalkOptions, find_server
from ..rosters import whisper_event

if TYPE_CHECKING:
    from ...models import Model
    from ...providers.weights import Weights
    from ...rosters.roster import Roster
    from .displays import Display
    from .questions import Questioner


def choose_servers(
    configuration: Configuration, options: TalkOptions, *, required: bool = False
) -> Configuration:
    """Enables those servers that were named, if any were; the others stay known, but unused.

    With `required`, nothing goes on without those that were named.
    """
    if options.no_tools:
        return replace(configuration, servers=FrozenDictionary())
    for name in options.server:
        find_server(configuration, name)
    if not options.server:
        return configuration
    servers = {
        name: replace(server, enabled=True, required=required or server.required)
        if name in options.server
        else replace(server, enabled=False)
        for name, server in configuration.servers.items()
    }
    return replace(configuration, servers=FrozenDictionary(servers))


def enlist(configuration: Configuration, *, lazy: bool, **settings: Any) -> Roster:
    """A roster, not yet open; with `lazy`, servers in `converser.lock` are started only by a call."""
    from ...rosters.catalogue import FILE_NAME
    from ...rosters.opening import open_roster

    lock = _find_lock(configuration, FILE_NAME)
    if lazy and lock is not None:
        configuration = _relax(configuration, lock)
    settings.setdefault("observer", whisper_event)
    return open_roster(configuration, lock=lock, renew_lock=False, **settings)


def _find_lock(configuration: Configuration, name: str) -> Path | None:
    """The catalogue that is there; talking to a model makes none."""
    paths = [source.path.with_name(name) for source in configuration.files[:1]]
    return next((path for path in paths if path.is_file()), None)


def _relax(configuration: Configuration, lock: Path) -> Configuration:
    from ...rosters.catalogue import identify_reach, read_catalogue

    known = read_catalogue(lock).servers
    servers = {
        name: replace(server, lazy=True)
        if name in known and known[name].reach == identify_reach(server)
        else server
        for name, server in configuration.servers.items()
    }
    return replace(configuration, servers=FrozenDictionary(servers))


async def find_model(
    name: str | None, configuration: Configuration, report: Callable[[str], None]
) -> Model:
    """The model of that name, or what is at hand; looking round takes a moment."""
    from ...models import access_model

    def access() -> Model:
        return access_model(name, configuration=configuration, report=report)

    return await run_sync(access)


def title_model(name: str) -> str:
    """A model as people call it; of the embedded one, the name of its file says nothing to them."""
    return "embedded" if name.startswith("embedded:") else name


def label_model(model: Model, display: Display) -> None:
    """Says of the embedded model what it is, unless that was among the reasons to take it."""
    if title_model(model.name) == "embedded" and "demonstration" not in model.reason:
        display.tell("embedded: a small model on this machine; a demonstration, which errs.")


async def obtain_consent(
    model: Model,
    configuration: Configuration,
    display: Display,
    questioner: Questioner | None,
    *,
    yes: bool,
) -> None:
    """Lets the weights of the embedded model be fetched only where the person wants it."""
    if yes or (weights := _find_missing_weights(model, configuration)) is None:
        return
    words = f"The embedded model must be fetched first, once: {weights.describe()}."
    if questioner is not None:
        async with display.pausing():
            display.tell(words, "default")
            answer = await questioner.choose("  Fetch it?  y yes · n no  ", "yn")
        if answer == "y":
            return
    raise ModelFailure(
        f"{words} That was not approved.",
        remedy="Approve it with --yes, or name another model with --model.",
    )


def _find_missing_weights(model: Model, configuration: Configuration) -> Weights | None:
    """The weights that a model would fetch, if it would."""
    if title_model(model.name) != "embedded":
        return None
    from ...configuration import resolve_value
    from ...providers.weights import Weights

    table: Mapping[str, Any] = configuration.tables.get("provider", {}).get("embedded", {})
    source = table.get("source")
    if isinstance(source, str):
        source = resolve_value(source, folder=None, key="provider.embedded.source")
    weights = Weights(source=source, sha256=table.get("sha256"))
    folder = Path(platformdirs.user_cache_dir("converser")) / "models"
    is_there = "path" in table or (folder / weights.file_name).exists()
    return None if is_there else weights
