# SPDX-License-Identifier: Apache-2.0
"""Every way in which a service or its SDK can fail, made one kind of failure that names the remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, NoReturn
from urllib.parse import urlsplit

from ..exceptions import ModelFailure
from ..naming import suggest_name

TRY_AGAIN = "Nothing of it was used: try again."
_NO_SUCH_SERVICE = "If it stays so, check base_url: what answers there may be another service."
_SHORTEN = (
    "It is more than the model takes: leave old canisters out, lower result_budget and tools_budget"
    " in the limits, or take a model with more room."
)
_TOO_MUCH = (
    r"max_(completion_|output_)?tokens\W.{0,40}(too (large|high)|>|exceed|less than|at most)"
)
_TOO_LONG = (
    r"context.{0,30}(length|window|size)|(prompt|input) is too long|token count.{0,40}exceeds"
    r"|maximum model length|request too large"
)
_TOOLLESS = r"support.{0,20} (tools?|function call)|tool[ _-]choice"
_UNPAID = r"credit balance|insufficient (credit|balance|funds|quota)|payment required"
_SLIP = r"failed to (call a function|parse tool call)|tool call validation failed"
_REMEDIES = {
    _TOO_MUCH: "Give controls=Controls(tokens_max=…), no more than the model takes.",
    _TOO_LONG: _SHORTEN,
    _UNPAID: "Add credit to the account at the service, or take another model.",
    _SLIP: f"The model made a slip in a call. {TRY_AGAIN}",
    _TOOLLESS: "Take a model that calls tools, or look how its server is made to; or give no ensembles.",
}
"""How services say what is too much for their models, with what helps."""
_HOMES = {
    "anthropic": re.compile(r"https://api\.anthropic\.com(/|$)"),
    "google": re.compile(r"https://generativelanguage\.googleapis\.com(/|$)"),
    "openai": re.compile(r"https://([a-z]+\.)?api\.openai\.com(/|$)"),
}
"""Where the services themselves are, of which OpenAI's has regions too."""
_NO_SUCH_MODEL = "model_not_found"
"""The code of an error with which OpenAI's Responses answer with 400, not 404."""
_UNREACHABLE = ("cannot be reached.", "Check base_url, the server, and the network.")
_TROUBLES = {
    **dict.fromkeys(
        ("APIConnectionError", "ClientConnectorError", "ConnectError", "ConnectTimeout"),
        _UNREACHABLE,
    ),
    **dict.fromkeys(
        ("APITimeoutError", "ReadTimeout", "ServerTimeoutError"),
        ("did not answer in time.", "Try again."),
    ),
}
"""What the SDKs raise where nothing of an answer came, in our words, with the remedy."""
_ENDPOINT = re.compile(r"/((chat/)?completions|responses|messages|models)$")
_VERSION = re.compile(r"/v\d\w*$")
"""What people leave at the end of an address, or leave off."""
_WORDS_MAX = 500
_SECRET_MIN = 8

SuggestModel = Callable[[], Awaitable[list[str]]]
"""Asks the service which models it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a service is sent to know the user by, and where people set it."""

    value: str | None = field(repr=False)
    place: str

    @property
    def sent(self) -> str:
        """What the SDKs are given: servers of one's own mostly want no key, but the SDKs do."""
        return self.value or "none"

    def hide(self, words: str) -> str:
        """Words of others without the key, should they repeat it; servers of one's own take any word for one."""
        is_secret = self.value is not None and len(self.value) >= _SECRET_MIN
        return words.replace(self.value or "", "…") if is_secret else words


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Who is spoken to: the model as messages call it, where it is, and the key for it."""

    name: str
    place: str
    key: Key
    status_attribute: str = "status_code"
    """What the errors of the SDK call the HTTP status with which the service answered."""
    path: str = ""
    """What addresses of such services end in, where the SDK does not add it."""

    @property
    def who(self) -> str:
        """The model and its place, to begin a sentence with."""
        return f"The model {self.name!r} at {self.place}"

    def read_status(self, failure: Exception) -> int | None:
        """The HTTP status with which the service answered, if that is what went wrong."""
        return getattr(failure, self.status_attribute, None)

    async def fail(
        self, failure: Exception, model: str, list_models: SuggestModel, *, heard: bool
    ) -> NoReturn:
        """Raises what an SDK raised, in our words; `heard` tells whether anything of an answer came."""
        if isinstance(failure, ModelFailure):
            raise failure
        status = self.read_status(failure)
        if status == 404 or getattr(failure, "code", None) == _NO_SUCH_MODEL:
            await self.fail_unknown(failure, model, list_models)
        if status is not None:
            self._fail_status(status, failure)
        kinds = [kind.__name__ for kind in type(failure).__mro__]
        known = next((_TROUBLES[kind] for kind in kinds if kind in _TROUBLES), None)
        if heard or known is None:
            self.break_off(failure)
        words, remedy = known
        raise ModelFailure(f"{self.who} {words}", remedy=remedy) from failure

    def _quote(self, failure: Exception) -> str:
        """What the service said, cut short and without the key."""
        return self.key.hide(shorten(_read_words(failure)).rstrip("."))

    def _fail_status(self, status: int, failure: Exception) -> NoReturn:
        """Raises what the service answered, in our words; its own on a key are not repeated."""
        said = self._quote(failure)
        cause: Exception | None = failure
        words, remedy = f"answered with an error: {said}.", find_remedy(said, status)
        if status == 401 or (status == 400 and "API key" in said):
            words, remedy = "refused the key.", f"Check the key, as {self.key.place}."
            if self.key.value is None:
                words, remedy = "wants a key.", f"Give it as {self.key.place}."
            cause = None
        elif status == 404:
            remedy = remedy or "The model is there: check base_url, and what the model can do."
        elif status == 403:
            words = f"refuses this to your key: {said}."
            remedy, cause = "Check what the account may use.", None
        elif status == 429:
            words = f"is over its rate limit or quota: {said}."
            remedy = remedy or "Wait, or check the account."
        raise ModelFailure(f"{self.who} {words}", remedy=remedy) from cause

    async def fail_unknown(
        self, failure: Exception, model: str, list_models: SuggestModel
    ) -> NoReturn:
        """Raises that the service does not know the model, with the nearest names that it does.

        Where it does know it, something else is not there, and its own words tell what.
        """
        remedy = "Check the name of the model, and base_url."
        try:
            names = await list_models()
        except Exception as other:
            names = []
            if self.read_status(other) == 404:
                remedy = f"{remedy[:-1]}{self._mend_place()}."
        if model in names:
            self._fail_status(404, failure)
        if names:
            remedy = suggest_name(model, names)
        words = f"is not known there: {self._quote(failure)}."
        raise ModelFailure(f"{self.who} {words}", remedy=remedy) from failure

    def _mend_place(self) -> str:
        """What an address may have to be, at which neither the model nor a list of models is."""
        root = _ENDPOINT.sub("", self.place)
        if not self.path:
            root = _VERSION.sub("", root)
        elif not _VERSION.search(root):
            root += self.path
        return "" if root == self.place else f", which may have to be {root}"

    def lack_words(self) -> NoReturn:
        """Raises that there is nothing which a model could answer."""
        raise ModelFailure(
            f"The model {self.name!r} has nothing to answer: the conversation has no message.",
            remedy="Give it a user canister.",
        )

    def break_off(self, failure: Exception | None = None, *, heard: bool = True) -> NoReturn:
        """Raises that an answer did not come to its end; where nothing of it came, it may be none."""
        words = failure and f": {shorten(f'{type(failure).__name__}: {_read_words(failure)}')}"
        cause = words or ""
        cause = self.key.hide(cause)
        remedy = find_remedy(cause)
        raise ModelFailure(
            f"The answer of the model {self.name!r} at {self.place} broke off{cause.rstrip('.')}.",
            remedy=remedy if heard else f"{remedy} {_NO_SUCH_SERVICE}",
        ) from failure


def _read_words(failure: Exception) -> str:
    """What a service said, without the wrapping that the SDKs quote with it."""
    body: Any = getattr(failure, "body", None)
    for key in ("error", "message"):
        body = body.get(key, body) if isinstance(body, dict) else body  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if isinstance(body, str) and body.strip():
        return body
    return str(getattr(failure, "message", None) or failure)


def find_remedy(said: str, status: int = 500) -> str:
    """What helps against an error of a service, by its words and its HTTP status."""
    if status == 413:
        return _SHORTEN
    for pattern, remedy in _REMEDIES.items():
        if re.search(pattern, said, re.IGNORECASE):
            return remedy
    return "" if 400 <= status < 500 else TRY_AGAIN


def shorten(words: str) -> str:
    """A service's own words, which may be a whole page."""
    return words if len(words) <= _WORDS_MAX else f"{words[:_WORDS_MAX]}…"


def import_sdk(package: str, extra: str) -> Any:
    """The SDK, imported only now; or how to install it."""
    try:
        return import_module(package)
    except ImportError as failure:
        raise ModelFailure(
            f"The package {package!r} is not installed.",
            remedy=f"Install it: pip install 'mcp-converser[{extra}]'.",
        ) from failure


def is_home(service: str, base_url: str) -> bool:
    """Whether an address is that of the service itself."""
    return service in _HOMES and _HOMES[service].match(base_url) is not None


def find_key(
    name: str,
    key: str | None,
    base_url: str | None,
    service: str,
    *variables: str,
    hint: str = "",
) -> Key:
    """The key that was given; or the one in the environment, which is for the service itself and goes nowhere else."""
    if base_url is not None:
        _check_address(name, base_url)
    is_elsewhere = base_url is not None and not is_home(service, base_url)
    place = "key=…, or `key` in the configuration"
    place = place if is_elsewhere else f"{variables[0]} or key=…"
    if (given := _check_key(name, key)) is not None or is_elsewhere:
        return Key(value=given, place=place)
    for variable in variables:
        if found := os.environ.get(variable):
            return Key(value=_check_key(name, found), place=place)
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
