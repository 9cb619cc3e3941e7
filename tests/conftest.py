# SPDX-License-Identifier: Apache-2.0
"""What all tests share: the backend, where caches go, and servers to talk to."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import hypothesis.configuration
import pytest

from tests import talks
from tests.chat_service import Service
from tests.servers import processes, third_party
from tests.servers.processes import RunningServer

if TYPE_CHECKING:
    from tests.servers.awkward import AwkwardServer

CACHES = Path(__file__).resolve().parent.parent / ".auxiliary" / "caches"

# Whoever runs the tests in the background may have it ignored, and so would all programs that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
hypothesis.configuration.set_hypothesis_home_dir(CACHES / "hypothesis")
# Machines of tests are slow now and then; that is no fault of the code.
hypothesis.settings.register_profile("converser", deadline=None)
hypothesis.settings.load_profile("converser")


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that tests remember gets among what people remember; the large models stay theirs."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("CONVERSER_TEST_EMBEDDED"):
            patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The SDK runs on asyncio as most people's programs do."""
    return "asyncio"


@pytest.fixture
def awkward_server() -> AwkwardServer:
    """A fresh awkward server in this process."""
    # Late, because the SDK takes a second to import and most tests do without it.
    from tests.servers.awkward import create_awkward_server

    return create_awkward_server()


@pytest.fixture(scope="session")
def awkward_command() -> list[str]:
    """The command of the awkward server over stdio."""
    return processes.awkward_command()


@pytest.fixture
def awkward_http() -> Iterator[RunningServer]:
    """A fresh awkward server over streamable HTTP, in a process of its own."""
    with processes.serve_awkward("http") as server:
        yield server


@pytest.fixture
def awkward_sse() -> Iterator[RunningServer]:
    """A fresh awkward server over SSE, in a process of its own."""
    with processes.serve_awkward("sse") as server:
        yield server


@pytest.fixture(scope="session")
def raw_command() -> Callable[[str], list[str]]:
    """Give the command of the raw server for a scenario."""
    return processes.raw_command


@pytest.fixture(scope="session")
def everything_command() -> list[str]:
    """The command of npm's `server-everything` over stdio."""
    return third_party.node_server_command("everything")


@pytest.fixture(scope="session")
def everything_http() -> Iterator[RunningServer]:
    """One `server-everything` over streamable HTTP for all tests."""
    with processes.serve_everything("http") as server:
        yield server


@pytest.fixture(scope="session")
def everything_sse() -> Iterator[RunningServer]:
    """One `server-everything` over SSE for all tests."""
    with processes.serve_everything("sse") as server:
        yield server


@pytest.fixture(scope="session")
def filesystem_command() -> list[str]:
    """The command of npm's `server-filesystem`; append the folders that it may touch."""
    return third_party.node_server_command("filesystem")


@pytest.fixture(scope="session")
def memory_command() -> list[str]:
    """The command of npm's `server-memory`; it keeps its data where MEMORY_FILE_PATH says."""
    return third_party.node_server_command("memory")


@pytest.fixture(scope="session")
def git_command() -> list[str]:
    """The command of PyPI's `mcp-server-git`; append `--repository` and a path."""
    return third_party.python_server_command("git")


@pytest.fixture(scope="session")
def time_command() -> list[str]:
    """The command of PyPI's `mcp-server-time`."""
    return third_party.python_server_command("time")


@pytest.fixture
def service() -> Iterator[Service]:
    """A service of Chat Completions that says what it is told to."""
    service = Service()
    yield service
    service.close()


@pytest.fixture
def project(tmp_path: Path, service: Service) -> Path:
    """A folder in which `ask` and `chat` have a model, that service, and the awkward server."""
    return talks.write_project(tmp_path, service)
