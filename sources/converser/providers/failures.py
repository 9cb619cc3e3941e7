# SPDX-License-Identifier: Apache-2.0
"""Every way in which a service or its SDK can fail, made one kind of failure that names the remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlsplit

from ..exceptions import ModelFailure
from ..naming import suggest_name

TRY_AGAIN = "Nothing of it was used: try again."
_NO_SUCH_SERVICE = "If it stays so, check base_url: what answers there may be another service."
_WORDS_MAX = 500
_SECRETIVE = ("AuthenticationError", "PermissionDeniedError")

SuggestModel = Callable[[], Awaitable[list[str]]]
"""Asks the service which models it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Who is spoken to: the model as messages call it, where it is, and which variable has its key."""

    name: str
    place: str
    key_variable: str
    sdk: Any

    @property
    def who(self) -> str:
        """The model and its place, to begin a sentence with."""
        return f"The model {self.name!r} at {self.place}"

    async def fail(
        self, failure: Exception, model: str, list_models: SuggestModel, *, begun: bool
    ) -> NoReturn:
        """Raises what an SDK of the family of `openai` and `anthropic` raised, in our words."""
        if isinstance(failure, ModelFailure):
            raise failure
        if begun and isinstance(failure, self.sdk.APIConnectionError):
            self.break_off(failure)
        for kind, words, remedy in self._tell_troubles():
            if isinstance(failure, getattr(self.sdk, kind)):
                raise ModelFailure(f"{self.who} {words}", remedy=remedy) from (
                    None if kind in _SECRETIVE else failure
                )
        # OpenAI's Responses answer with 400 for a model that they do not know.
        unknown = getattr(failure, "code", None) == "model_not_found"
        if unknown or isinstance(failure, self.sdk.NotFoundError):
            await self.fail_unknown(failure, model, list_models)
        if isinstance(failure, self.sdk.APIStatusError):
            status: int = getattr(failure, "status_code", 500)
            remedy = "" if 400 <= status < 500 else TRY_AGAIN
            words = f"{self.who} answered with an error: {shorten(str(failure))}"
            raise ModelFailure(words, remedy=remedy) from failure
        self.break_off(failure)

    async def fail_unknown(
        self, failure: Exception, model: str, list_models: SuggestModel
    ) -> NoReturn:
        """Raises that the service does not know the model, with the nearest names that it does."""
        try:
            names = await list_models()
        except Exception:
            names = []
        remedy = "Check the name of the model, and base_url."
        if names:
            remedy = suggest_name(model, names)
        raise ModelFailure(f"{self.who} is not known there.", remedy=remedy) from failure

    def lack_words(self) -> NoReturn:
        """Raises that there is nothing which a model could answer."""
        raise ModelFailure(
            f"The model {self.name!r} has nothing to answer: the conversation has no message.",
            remedy="Give it a user canister.",
        )

    def break_off(self, failure: Exception | None = None, *, heard: bool = True) -> NoReturn:
        """Raises that an answer did not come to its end; where nothing of it came, it may be none."""
        cause = "." if failure is None else f": {shorten(f'{type(failure).__name__}: {failure}')}"
        raise ModelFailure(
            f"The answer of the model {self.name!r} at {self.place} broke off{cause}",
            remedy=TRY_AGAIN if heard else f"{TRY_AGAIN} {_NO_SUCH_SERVICE}",
        ) from failure

    def _tell_troubles(self) -> tuple[tuple[str, str, str], ...]:
        """What the SDKs raise, in our words, with the remedy; the first that fits is taken."""
        return (
            ("AuthenticationError", *tell_refused_key(self.key_variable)),
            (
                "PermissionDeniedError",
                "refuses this to your key.",
                "Check what the account may use.",
            ),
            ("RateLimitError", "is over its rate limit or quota.", "Wait, or check the account."),
            ("APITimeoutError", "did not answer in time.", "Try again."),
            ("APIConnectionError", *CANNOT_BE_REACHED),
        )


CANNOT_BE_REACHED = ("cannot be reached.", "Check base_url, the server, and the network.")


def shorten(words: str) -> str:
    """A service's own words, which may be a whole page."""
    return words if len(words) <= _WORDS_MAX else f"{words[:_WORDS_MAX]}…"


def tell_refused_key(variable: str) -> tuple[str, str]:
    """What happened, and the remedy."""
    return "refused the key.", f"Check the key, as {variable} or key=…"


def import_sdk(package: str, extra: str) -> Any:
    """The SDK, imported only now; or how to install it."""
    try:
        return import_module(package)
    except ImportError as failure:
        raise ModelFailure(
            f"The package {package!r} is not installed.",
            remedy=f"Install it: pip install 'mcp-converser[{extra}]'.",
        ) from failure


def find_key(
    name: str, key: str | None, base_url: str | None, *variables: str, hint: str = ""
) -> str | None:
    """The key that was given; or the one in the environment, which is for the service itself and goes nowhere else."""
    if base_url is not None:
        _check_address(name, base_url)
    if (given := _check_key(name, key)) is not None or base_url is not None:
        return given
    for variable in variables:
        if found := os.environ.get(variable):
            return _check_key(name, found)
    raise ModelFailure(
        f"There is no key for the model {name!r}.",
        remedy=f"Set the environment variable {variables[0]}{hint}.",
    )


def _check_key(name: str, key: object) -> str | None:
    """A key that can be sent; the SDKs would say that the service cannot be reached, or show the key."""
    written = "" if key is None else str(key).strip()
    if written.isascii() and written.isprintable():
        return written or None
    raise ModelFailure(
        f"The key for the model {name!r} has characters that no key has.",
        remedy="Copy it anew, as one line.",
    )


def _check_address(name: str, url: str) -> None:
    """Refuses what is no address, which the SDKs notice late or call unreachable."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        is_address = False
    if not is_address:
        raise ModelFailure(
            f"The base_url for the model {name!r} is not an address.",
            remedy="Write it as http://HOST:PORT/… or https://HOST/….",
        )


def is_since(model: str, pattern: re.Pattern[str], least: tuple[int, int]) -> bool:
    """Whether the name of a model says that it is of a generation or a later one."""
    found = pattern.match(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= least


def describe_place(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"
