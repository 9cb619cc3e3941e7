# SPDX-License-Identifier: Apache-2.0
"""A conversation as one HTML page: no script, nothing from elsewhere, and nothing said can become a part of it."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files

from ...canisters import (
    AssistantCanister,
    Canister,
    DocumentCanister,
    ResultCanister,
    SupervisorCanister,
    UnknownCanister,
    UserCanister,
)
from ..conversation import ConversationSurvey
from .pieces import escape, show_contents, show_data
from .timeline import Call, Entry, Message, Totals, add_up, arrange
from .words import localize, write_brief, write_count, write_duration, write_time, write_usage

_BAR = 44


def write_page(survey: ConversationSurvey, canisters: Sequence[Canister]) -> str:
    """The page; the style has its hash in the policy, so that no other style or script is obeyed."""
    style = files("converser.persistence.exports").joinpath("page.css").read_text(encoding="utf-8")
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; media-src data:;"
        " base-uri 'none'; form-action 'none'"
    )
    title = escape(survey.title or survey.identifier)
    entries = list(arrange(canisters))
    totals = add_up(canisters)
    model = totals.model or survey.metadata.model
    longest = max((call.duration or 0 for call in entries if isinstance(call, Call)), default=0)
    timeline = "\n".join(_show_entry(entry, longest, model) for entry in entries)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="converser">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{_show_facts(survey, totals, model)}
</header>
<main>
<ol class="timeline">
{timeline}
</ol>
</main>
<footer>Conversation {escape(survey.identifier)}, exported by converser</footer>
</body>
</html>
"""


def _show_facts(survey: ConversationSurvey, totals: Totals, model: str) -> str:
    metadata = survey.metadata
    calls = write_count(totals.calls, "call")
    failed = f", {totals.failures:,} failed" if totals.failures else ""
    facts = {
        "Began": write_time(totals.began or metadata.created),
        "Model": model,
        "Servers": ", ".join(metadata.servers),
        "Tags": ", ".join(metadata.tags),
        "Forked from": metadata.parent,
        "Length": f"{write_count(totals.turns, 'turn')}, {calls}{failed}",
        "Tokens": write_usage(totals.usage).replace(" tokens", ""),
    }
    shown = (
        f"<div><dt>{key}</dt><dd>{escape(value)}</dd></div>"
        for key, value in facts.items()
        if value
    )
    return f'<dl class="facts">{"".join(shown)}</dl>'


def _show_entry(entry: Entry, longest: float, model: str) -> str:
    if isinstance(entry, Call):
        failed = entry.result is None or entry.result.error is not None
        kind, time = f"call{' failed' if failed else ''}", entry.invocation.timestamp
        body = _show_call(entry, longest)
    else:
        kind, time = _find_kind(entry.canister), entry.canister.timestamp
        body = _show_message(entry, model)
    local = localize(time)
    return (
        f'<li class="entry {kind}" id="c{entry.number}">'
        f'<div class="time"><a href="#c{entry.number}"><time datetime="{local.isoformat()}"'
        f' title="{write_time(time)}">{local:%H:%M:%S}</time></a></div>'
        f'<div class="rail"></div><div class="body">{body}</div></li>'
    )


def _find_kind(canister: Canister) -> str:
    return type(canister).__name__.removesuffix("Canister").lower()


def _show_message(message: Message, model: str) -> str:
    canister = message.canister
    if isinstance(canister, (SupervisorCanister, DocumentCanister)):
        name = getattr(canister, "name", None)
        label = "Instructions" if isinstance(canister, SupervisorCanister) else "Document"
        title = f'<span class="tool">{escape(name)}</span>' if name else f"<span>{label}</span>"
        brief = " ".join(canister.text.split())[:100]
        return _fold(
            f'{title}<span class="brief">{escape(brief)}</span>',
            show_contents(canister.contents, code=bool(name)),
        )
    if isinstance(canister, UserCanister):
        return (
            f'<div class="who">You</div><div class="said">{show_contents(canister.contents)}</div>'
        )
    if isinstance(canister, AssistantCanister):
        return _show_answer(canister, model)
    if isinstance(canister, ResultCanister):
        title = '<span class="tool">A result without its call</span>'
        return _fold(title, _show_result(canister))
    data = canister.data if isinstance(canister, UnknownCanister) else canister.arguments
    kind = canister.kind if isinstance(canister, UnknownCanister) else "invocation"
    return _fold(f'<span class="tool">{escape(kind)}</span>', show_data(data))


def _show_answer(canister: AssistantCanister, model: str) -> str:
    """What a model said, named where it is not the usual one; of a turn that only made calls, what it cost."""
    name = "Assistant" if canister.model in (None, model) else canister.model
    tokens = "" if canister.usage is None else write_usage(canister.usage)
    who = (
        f'<div class="who"><span>{escape(name or "Assistant")}</span>'
        f'<span class="tokens">{tokens}</span></div>'
    )
    said = show_contents(canister.contents, prose=True)
    return f'{who}<div class="said">{said}</div>' if said else who


def _show_call(call: Call, longest: float) -> str:
    result = call.result
    outcome = "no result" if result is None else str(result.outcome).replace("-", " ")
    failed = result is None or result.error is not None
    title = (
        f'<span class="tool">{escape(call.invocation.name)}</span>'
        f'<span class="brief">{escape(write_brief(call.invocation.arguments))}</span>'
        + (f'<span class="outcome">{outcome}</span>' if failed else "")
        + _show_duration(call.duration, longest)
    )
    inside = f"<h3>Arguments</h3>{show_data(call.invocation.arguments)}"
    if result is not None:
        inside += f"<h3>Result</h3>{_show_result(result)}"
    return _fold(title, inside, is_open=failed or _has_picture(result))


def _has_picture(result: ResultCanister | None) -> bool:
    return result is not None and any(
        type(content).__name__ == "ImageContent" for content in result.contents
    )


def _show_result(result: ResultCanister) -> str:
    """The error, the contents, and structured data where the contents do not say it already."""
    parts: list[str] = []
    if result.error is not None:
        parts.append(f'<div class="error">{escape(result.error)}</div>')
    if result.contents:
        parts.append(show_contents(result.contents, code=True))
    if result.structured is not None:
        parts.append(f"<h3>Structured</h3>{show_data(result.structured)}")
    return "".join(parts) or '<p class="note">Nothing.</p>'


def _show_duration(seconds: float | None, longest: float) -> str:
    """How long a call took, and a bar that compares it with the longest."""
    if seconds is None:
        return ""
    part = max(1.0, _BAR * seconds / longest) if longest else 1.0
    bar = (
        f'<svg width="{_BAR}" height="4" aria-hidden="true"><rect class="whole" width="{_BAR}"'
        f' height="4" rx="2"/><rect class="part" width="{part:.1f}" height="4" rx="2"/></svg>'
    )
    return f'<span class="took">{bar}{write_duration(seconds)}</span>'


def _fold(title: str, inside: str, *, is_open: bool = False) -> str:
    return (
        f'<details class="fold"{" open" if is_open else ""}><summary>{title}</summary>'
        f'<div class="inside">{inside}</div></details>'
    )
