# SPDX-License-Identifier: Apache-2.0
"""Questions that servers ask during a call, answered in place: forms field by field, pages by leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rich.text import Text

from ...schemas.validators import compile_schema
from .displays import Display
from .questions import Questioner
from .wording import clean_line, tidy

if TYPE_CHECKING:
    from ...mcp.handlers import Elicitation, ElicitationAnswer, ElicitationHandler

_SKIPPED = object()


def create_elicitor(display: Display, questioner: Questioner | None) -> ElicitationHandler | None:
    """Who answers servers; nobody where there is no person, and servers are told so."""
    if questioner is None:
        return None
    person = questioner

    async def elicit(question: Elicitation) -> ElicitationAnswer:
        async with display.pausing():
            return await _answer(question, display, person)

    return elicit


async def _answer(
    question: Elicitation, display: Display, questioner: Questioner
) -> ElicitationAnswer:
    from ...mcp.handlers import ElicitationAnswer

    console = display.console
    head = Text("? ", "yellow").append(
        f"The server {clean_line(question.server)} asks: ", "bold default"
    )
    console.print(head.append(tidy(question.message), "default"), soft_wrap=True)
    if question.url is not None:
        return await _offer_page(question.url, display, questioner)
    values: dict[str, Any] = {}
    form = question.form or {}
    required: Sequence[str] = form.get("required") or ()
    for name, part in _list_fields(form):
        value = await _fill(name, part, display, questioner, is_required=name in required)
        if value is None:
            display.tell("  not sent")
            return ElicitationAnswer(action="decline")
        if value is not _SKIPPED:
            values[name] = value
    answer = await questioner.choose("  Send this to the server?  y yes · n no  ", "yn")
    display.tell("  sent" if answer == "y" else "  not sent")
    return ElicitationAnswer(action="accept" if answer == "y" else "decline", values=values)


async def _offer_page(url: str, display: Display, questioner: Questioner) -> ElicitationAnswer:
    """Shows the whole address, and opens nothing before the person has said so."""
    from ...mcp.handlers import ElicitationAnswer

    display.console.print(Text(f"  {clean_line(url)}", "underline"), soft_wrap=True)
    if not url.startswith(("https://", "http://")):
        display.tell("That is no page on the web, so it is not opened.", "yellow")
        return ElicitationAnswer(action="decline")
    answer = await questioner.choose("  Open this page?  y yes · n no  ", "yn")
    display.tell("  opened" if answer == "y" else "  not opened")
    if answer != "y":
        return ElicitationAnswer(action="decline")
    import webbrowser

    if not webbrowser.open(url):
        display.tell("No browser was found: open the address yourself.", "yellow")
    return ElicitationAnswer(action="accept")


def _list_fields(form: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    fields = form.get("properties")
    if not isinstance(fields, Mapping):
        return []
    return [
        (name, cast("Mapping[str, Any]", part))
        for name, part in cast("Mapping[str, Any]", fields).items()
        if isinstance(part, Mapping)
    ]


async def _fill(
    name: str,
    part: Mapping[str, Any],
    display: Display,
    questioner: Questioner,
    *,
    is_required: bool,
) -> Any:
    """One field, asked again until it fits; None where the person declines."""
    choices = _list_choices(part)
    title = clean_line(str(part.get("title") or name))
    if words := part.get("description"):
        display.tell(f"  {clean_line(str(words))}")
    if choices:
        display.tell(f"  one of: {', '.join(map(clean_line, choices))}")
    default = part.get("default")
    shown = "" if default is None else _write_default(default)
    validator = compile_schema(dict(part))
    while True:
        label = f"  {title}{'' if is_required else ' (optional)'}: "
        line = await questioner.read(label, default=shown, options=choices)
        if line is None:
            return None
        if not line.strip() and not is_required:
            return _SKIPPED
        value = _read_value(line.strip(), part)
        if not (violations := validator.violations(value)):
            return value
        display.tell(f"  {violations[0].expected} is wanted.", "yellow")


def _list_choices(part: Mapping[str, Any]) -> list[str]:
    """What an enumeration allows, also that of a list's items."""
    source: Any = part.get("items") if part.get("type") == "array" else part
    if not isinstance(source, Mapping):
        return []
    facts = cast("Mapping[str, Any]", source)
    named = [each.get("const") for each in facts.get("oneOf") or facts.get("anyOf") or ()]
    return [str(each) for each in (facts.get("enum") or named) if each is not None]


def _write_default(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, (list, tuple)):
        return ", ".join(map(str, cast("list[Any]", default)))
    return clean_line(str(default))


def _read_value(line: str, part: Mapping[str, Any]) -> Any:
    """A line as the type that the field wants; where it is none, the line as it is."""
    kind = part.get("type")
    if kind == "boolean" and line.lower() in {"y", "yes", "true", "n", "no", "false"}:
        return line.lower() in {"y", "yes", "true"}
    if kind == "array":
        return [word.strip() for word in line.split(",") if word.strip()]
    if kind in {"integer", "number"}:
        try:
            return int(line) if kind == "integer" else float(line)
        except ValueError:
            return line
    return line
