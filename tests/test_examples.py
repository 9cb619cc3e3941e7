# SPDX-License-Identifier: Apache-2.0
"""Every example of the documentation runs, and prints what the documentation says that it prints."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from converser.configuration.checks import CHECKS
from tests import terminals

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTATION = ROOT / "documentation"
EXAMPLES = DOCUMENTATION / "examples"
DEADLINE = 120.0
_PAGES = sorted(DOCUMENTATION.rglob("*.rst"))
_REMOTE = "over_http"
_PROGRAMS = sorted({path.stem for path in EXAMPLES.glob("*.txt")} - {_REMOTE})
_SERVERS = {"weather_server", "notes_server", "troubled_server"}
_OTHERS = {_REMOTE, "quick_start", "embedded", "test_weather", *_SERVERS}
_PROVIDER = """
from converser.canisters import AssistantCanister, ResultCanister
from converser.contents import TextualContent
from converser.turns import Call, TurnCompleted

class Provider:
    name = "said"

    def __init__(self, model):
        self._turns = iter([[Call(name="get_time", arguments={"timezone": "Asia/Tokyo"}),
                             Call(name="count_letters", arguments={"word": "Tokyo"})], []])

    async def stream_turn(self, request):
        calls = next(self._turns)
        results = [each.text for each in request.canisters if isinstance(each, ResultCanister)]
        text = " | ".join(results)
        canister = AssistantCanister(contents=(TextualContent(text=text),), model=self.name)
        yield TurnCompleted(canister=canister, calls=tuple(calls))

    async def close(self): ...
"""
"""A model as another package brings one: it calls a tool of each kind, and quotes the results."""


def run(
    *arguments: str | Path, cwd: Path = ROOT, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run Python as a reader would who has just activated the environment of this interpreter."""
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    variables |= {"PATH": os.pathsep.join(folders), "PYTHONIOENCODING": "utf-8"}
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
    )


@contextlib.contextmanager
def serve_weather() -> Generator[str]:
    """Run the weather server on a free port, and give its URL once it can be reached."""
    command = [sys.executable, str(EXAMPLES / "weather_server.py"), "http", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        guard = threading.Timer(DEADLINE, process.kill)
        guard.start()
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if match := re.search(r"running on (http\S+)", line):
                    yield f"{match[1]}/mcp"
                    break
            else:
                pytest.fail(f"The server ended: {said}")
        finally:
            guard.cancel()
            process.kill()


@pytest.mark.parametrize("name", _PROGRAMS)
def test_an_example_prints_what_the_documentation_says(name: str, tmp_path: Path) -> None:
    ended = run(EXAMPLES / f"{name}.py", cwd=tmp_path)
    assert ended.stderr == ""
    assert ended.returncode == 0
    assert ended.stdout == (EXAMPLES / f"{name}.txt").read_text(encoding="utf-8")


def test_the_http_example_reaches_a_server_behind_a_url(tmp_path: Path) -> None:
    with serve_weather() as url:
        ended = run(EXAMPLES / f"{_REMOTE}.py", url, cwd=tmp_path)
    assert ended.stderr == ""
    assert ended.stdout == (EXAMPLES / f"{_REMOTE}.txt").read_text(encoding="utf-8")


def test_the_quick_start_converses_with_the_model_that_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "said.py").write_text(_PROVIDER, encoding="utf-8")
    folder = tmp_path / "said-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: said\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[converser.providers]\nsaid = said:Provider\n")
    ended = run(EXAMPLES / "quick_start.py", "said:it", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert ended.stderr == ""
    time, letters = ended.stdout.rsplit(" | ", 1)
    assert "+09:00" in time
    assert letters == "5\n"


def test_the_example_of_a_test_passes(tmp_path: Path) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(EXAMPLES))
    ended = run("-m", "pytest", *options, EXAMPLES / "test_weather.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


@pytest.mark.skipif(
    "CONVERSER_TEST_EMBEDDED" not in os.environ,
    reason="takes a minute and 1.1 GB: set CONVERSER_TEST_EMBEDDED=1 to talk to the real model",
)
def test_the_embedded_model_uses_a_tool_of_a_real_server(tmp_path: Path) -> None:
    ended = run(EXAMPLES / "embedded.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "invocation  get_weather {'city': 'Oslo'}" in ended.stdout
    assert "7" in ended.stdout.splitlines()[-1]


def test_the_main_job_of_the_readme_reaches_its_server(
    tmp_path: Path, time_command: list[str]
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (job,) = re.findall(r"^python3 .* converser (ask .*)$", readme, re.MULTILINE)
    words = shlex.split(job)
    configuration = ROOT / words[words.index("--config") + 1]
    path = os.pathsep.join((str(Path(time_command[0]).parent), os.environ["PATH"]))
    ended = terminals.run(
        *("call", "time.get_current_time", "timezone=Asia/Tokyo", "--config", configuration),
        cwd=tmp_path,
        environment={"PATH": path},
    )
    assert "+09:00" in ended.stdout, ended.stderr


def test_every_example_file_is_in_the_documentation_and_is_run() -> None:
    included = {
        Path(match[1]).name
        for page in _PAGES
        for match in re.finditer(r"literalinclude:: (\S+)", page.read_text(encoding="utf-8"))
    }
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert files <= included
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*_PROGRAMS, *_OTHERS}


def test_no_page_has_python_that_is_not_a_file() -> None:
    loose = r"^\s*\.\. (code-block|code|sourcecode):: (python|py\w*)\b|^>>> "
    offenders = [
        page.name
        for page in _PAGES
        if re.search(loose, page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert offenders == []


def test_every_key_of_a_server_is_explained() -> None:
    page = (DOCUMENTATION / "how-to" / "configure.rst").read_text(encoding="utf-8")
    keys = CHECKS.keys() - {"scope"}  # which is known, not written
    assert [key for key in keys if f"``{key}``" not in page] == []


def test_the_map_names_every_room() -> None:
    sources = ROOT / "sources" / "converser"
    text = (sources / "README.md").read_text(encoding="utf-8")
    detailed = (sources, sources / "mcp")
    rooms = [path for folder in detailed for path in folder.glob("*.py")]
    rooms += [path.parent for path in sources.rglob("__init__.py") if path.parent != sources]
    missing = [
        path.name for path in rooms if f"{path.name}`" not in text and f"{path.name}/`" not in text
    ]
    assert missing == [], "Add a line for each to sources/converser/README.md."


def test_the_python_in_the_readme_is_the_beginning_of_an_example_that_runs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert blocks
    examples = [path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")]
    for block in blocks:
        assert any(block in example for example in examples), block


def _rewrite() -> None:
    """Writes down what the examples print now: `python -m tests.test_examples`; read the difference."""
    for name in _PROGRAMS:
        ended = run(EXAMPLES / f"{name}.py")
        (EXAMPLES / f"{name}.txt").write_text(ended.stdout, encoding="utf-8")
        print(name, ended.returncode, ended.stderr)


if __name__ == "__main__":
    _rewrite()
