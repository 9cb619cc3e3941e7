# SPDX-License-Identifier: Apache-2.0
"""The public names are pinned, typed and loaded late, so that `import converser` costs next to nothing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import converser

SOURCE = Path(converser.__file__)
HEAVY = ("mcp", "mcp_types", "frigid", "pydantic", "anyio", "jsonschema_rs", "httpx2", "asyncio")


def find_typed_imports() -> Iterator[tuple[str, ast.alias]]:
    """What is imported for type checkers only: the room and the name."""
    for node in ast.parse(SOURCE.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.ImportFrom):
                    yield from ((statement.module or "", alias) for alias in statement.names)


def find_typed_names() -> dict[str, str]:
    """The names that a type checker sees, each with the room that it comes from."""
    return {alias.asname or alias.name: room for room, alias in find_typed_imports()}


def test_what_type_checkers_see_is_what_is_exported() -> None:
    assert sorted(converser.__all__) == sorted([*find_typed_names(), "__version__"])


def test_each_name_is_exported_once() -> None:
    assert len(set(converser.__all__)) == len(converser.__all__)


@pytest.mark.parametrize("name", sorted(converser.__all__))
def test_every_name_can_be_got_and_comes_from_where_type_checkers_say(name: str) -> None:
    value = getattr(converser, name)
    room = find_typed_names().get(name)
    if room is not None:
        assert getattr(sys.modules[f"converser.{room}"], name) is value


def test_every_type_checked_name_is_re_exported_under_its_own_name() -> None:
    # `import X as X` is how type checkers know an export from a mere import.
    assert [alias.name for _, alias in find_typed_imports() if alias.asname != alias.name] == []


def test_dir_lists_the_public_names() -> None:
    assert set(converser.__all__) <= set(dir(converser))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'converser' has no attribute 'StdioMcpClient'"):
        _ = converser.StdioMcpClient  # type: ignore[attr-defined]


def run_fresh(code: str) -> list[str]:
    """The modules that are loaded after some code, in a fresh interpreter."""
    script = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    outcome = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    modules: list[str] = json.loads(outcome.stdout)
    return modules


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not {module.partition(".")[0] for module in run_fresh("import converser")} & {*HEAVY}


def test_canisters_and_local_tools_do_not_load_the_mcp_sdk() -> None:
    modules = run_fresh(
        "import converser\n"
        "converser.user('Hello')\n"
        "converser.create_local_ensemble('local', [lambda_ for lambda_ in ()])\n"
    )
    assert not {module.partition(".")[0] for module in modules} & {"mcp", "mcp_types", "pydantic"}


def test_a_name_is_looked_up_once() -> None:
    assert converser.Ensemble is converser.__dict__["Ensemble"]
