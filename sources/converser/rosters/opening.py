# SPDX-License-Identifier: Apache-2.0
"""From a configuration, or the path of one, to a roster that can be opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from absence import Absential, absent, is_absent

from ..configuration import Configuration
from ..events import Observer
from .catalogue import FILE_NAME
from .roster import PARALLEL, Roster
from .watching import ConfigurationFiles

if TYPE_CHECKING:
    from ..mcp.handlers import ElicitationHandler


def open_roster(
    configuration: Absential[str | Path | Configuration] = absent,
    *,
    elicit: ElicitationHandler | None = None,
    observer: Observer | None = None,
    lock: Absential[str | Path | None] = absent,
    renew_lock: bool = True,
    lazy: bool = False,
    parallel: int = PARALLEL,
    health: float | None = None,
    watch: float | None = None,
) -> Roster:
    """A roster of configured servers: `async with open_roster("converser.toml") as roster: …`.

    Without a path, the files of the project and of the user hold. Unless another `lock` is given,
    or None, the catalogue of tools is `converser.lock` beside the file. With `watch`, the files are
    looked at so often, in seconds, and the roster follows their changes. The rest is as in `Roster`.
    """
    if isinstance(configuration, Configuration):
        files = ConfigurationFiles.behind(configuration)
    else:
        files = ConfigurationFiles(None if is_absent(configuration) else Path(configuration))
        configuration = files.load()
    if is_absent(lock):
        sources = configuration.files
        lock = sources[0].path.with_name(FILE_NAME) if sources else None
    return Roster(
        configuration.servers.values(),
        elicit=elicit,
        observer=observer,
        lock=lock,
        renew_lock=renew_lock,
        lazy=lazy,
        parallel=parallel,
        health=health,
        watch=watch,
        files=files,
    )
