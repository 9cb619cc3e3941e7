# SPDX-License-Identifier: Apache-2.0
"""`converser doctor`: looks at everything that can be wrong, and says what to do about it."""

from __future__ import annotations

import json as json_format
import platform
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from .. import __version__
from ..configuration import Configuration, MCPServer, Source
from ..configuration.mistakes import printable
from ..exceptions import ConfigurationFailure
from ..hygiene import clean_text
from .checkups import check_command, check_model, check_providers, check_references
from .exits import ExitCode
from .findings import Finding, broken, note, well
from .options import DEFAULTS, AsJSON, Options
from .rosters import create_roster
from .screen import count, say, write
from .trust import find_untrusted, is_given

_MARKS = {"well": ("✓", "green"), "note": ("!", "yellow"), "broken": ("✗", "red")}


def doctor(*, json: AsJSON = False, options: Options = DEFAULTS) -> int:
    """Checks configuration, servers and models; exits with 12 if something is broken."""
    findings = [*_examine(options)]
    if json:
        say(json_format.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    is_well = all(finding.level != "broken" for finding in findings)
    return ExitCode.SUCCESS if is_well else ExitCode.UNHEALTHY


def _examine(options: Options) -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}"
    yield well("converser", f"{__version__}, Python {platform.python_version()}, {system}")
    try:
        configuration = options.read()
    except ConfigurationFailure as failure:
        for mistake in failure.mistakes:
            yield broken("configuration", str(mistake), "Correct it; no command works before that.")
        configuration = Configuration()
    else:
        yield from _check_files(configuration)
    distrusted = [] if is_given(options.trust) else find_untrusted(configuration)
    yield from _check_servers(configuration, distrusted)
    # The address of a provider is asked whether it answers, and must not be a stranger's.
    yield from check_model(replace(configuration, tables={}) if distrusted else configuration)
    yield from check_providers()


def _check_files(configuration: Configuration) -> Iterator[Finding]:
    for source in configuration.files:
        number = sum(server.origin == source.path for server in configuration.servers.values())
        words = f"{printable(str(source.path))} ({source.scope}): {count(number, 'server')}"
        yield well("configuration", words)
        yield from _check_lock(source.path)
    if not configuration.files:
        remedy = "Begin with: converser init"
        yield note(
            "configuration", "There is no converser.toml here, and none of your own.", remedy
        )


def _check_lock(path: Path) -> Iterator[Finding]:
    from ..rosters.catalogue import FILE_NAME, read_catalogue

    try:
        read_catalogue(path.with_name(FILE_NAME))
    except ConfigurationFailure as failure:
        yield broken("lock", failure.message, failure.remedy)


def _check_servers(configuration: Configuration, distrusted: Sequence[Source]) -> Iterator[Finding]:
    """First what can be known without starting anything, and then all that are left, at once."""
    for source in distrusted:
        yield note(
            "trust",
            f"{printable(str(source.path))} was not approved as it is, so its servers were not"
            " started.",
            "Read it, and approve it: converser servers (at a terminal), or --trust.",
        )
    paths = [source.path for source in distrusted]
    healthy: list[MCPServer] = []
    for server in configuration.servers.values():
        if not server.enabled:
            yield note(server.name, "is disabled", f"converser servers enable {server.name}")
            continue
        faults = [*check_references(server), *check_command(server)]
        yield from faults
        if not faults and server.origin not in paths:
            healthy.append(server)
    if healthy:
        yield from anyio.run(_connect, healthy)


async def _connect(servers: Sequence[MCPServer]) -> list[Finding]:
    findings: list[Finding] = []
    async with create_roster(servers) as roster:
        surveys = await roster.check()
    for name, survey in surveys.items():
        if survey.error is not None:
            findings.append(broken(name, survey.error.message, survey.error.remedy))
            continue
        pulse = "" if survey.pulse is None else f", answers in {1000 * survey.pulse:.0f} ms"
        words = f"{count(len(survey.tools), 'tool')}, about {survey.tokens} tokens{pulse}"
        findings.append(well(name, words))
        findings.extend(note(name, words) for words in (survey.trouble, *survey.remarks) if words)
        for tool, reason in survey.disabled_tools.items():
            findings.append(note(f"{name}.{tool}", f"cannot be used: {reason}"))
    return findings


def _print(findings: Sequence[Finding]) -> None:
    console = Console(highlight=False)
    for finding in findings:
        mark, style = _MARKS[finding.level]
        subject, words = clean_text(finding.subject), clean_text(finding.words)
        write(console, Text.assemble((f"{mark} ", style), (subject, "bold"), f": {words}"))
        if finding.remedy:
            write(console, Text(f"    {clean_text(finding.remedy)}", "dim"))
    sys.stdout.flush()
