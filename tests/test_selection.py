# SPDX-License-Identifier: Apache-2.0
"""An ensemble exposes what its selection admits: allow list, then deny list, then predicate."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

import converser
from tests.test_naming import do_nothing

TOOLS = ("read_file", "read_folder", "write_file", "delete_file", "Read_File", "odd[1]")


def expose(selection: converser.Selection, tools: tuple[str, ...] = TOOLS) -> list[str]:
    return [invoker.tool.name for invoker in create(selection, tools).invokers.values()]


def create(selection: converser.Selection, tools: tuple[str, ...] = TOOLS) -> converser.Ensemble:
    return converser.Ensemble(
        "disk",
        tools=[
            (
                converser.Tool(
                    name=name, annotations=converser.Annotations(read_only="ead_" in name)
                ),
                do_nothing,
            )
            for name in tools
        ],
        configuration=converser.EnsembleConfiguration(selection=selection),
    )


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, set(TOOLS)),
        ({"allow": ("read_file",)}, {"read_file"}),
        ({"allow": ("read_*",)}, {"read_file", "read_folder"}),
        ({"allow": ("*_f?le",)}, {"read_file", "write_file", "delete_file"}),
        ({"allow": ("[rw]*_file",)}, {"read_file", "write_file"}),
        ({"allow": ()}, set()),
        ({"deny": ("*",)}, set()),
        ({"deny": ("*_file",)}, {"read_folder", "Read_File", "odd[1]"}),
        ({"allow": ("read_*",), "deny": ("read_file",)}, {"read_folder"}),
        ({"allow": ("read_file",), "deny": ("read_*",)}, set()),
        ({"allow": ("odd[1]",)}, {"odd[1]"}),
    ],
)
def test_the_deny_list_is_applied_after_the_allow_list(
    selection: dict[str, Any], expected: set[str]
) -> None:
    assert set(expose(converser.Selection(**selection))) == expected


def test_a_predicate_sees_the_whole_tool_and_comes_last() -> None:
    seen: list[str] = []

    def is_harmless(tool: converser.Tool) -> bool:
        seen.append(tool.name)
        return bool(tool.annotations.read_only)

    selection = converser.Selection(deny=("read_folder",), predicate=is_harmless)
    assert set(expose(selection)) == {"read_file", "Read_File"}
    assert "read_folder" not in seen


@given(
    allow=st.none() | st.lists(st.sampled_from([*TOOLS, "read_*", "*_file"])).map(tuple),
    deny=st.lists(st.sampled_from([*TOOLS, "*er", "write*"])).map(tuple),
)
def test_nothing_that_is_denied_is_ever_exposed(
    allow: tuple[str, ...] | None, deny: tuple[str, ...]
) -> None:
    exposed = set(expose(converser.Selection(allow=allow, deny=deny)))
    denied = set(TOOLS) - set(expose(converser.Selection(deny=deny)))
    allowed = set(expose(converser.Selection(allow=allow)))
    assert exposed == allowed - denied


def test_a_pattern_that_matches_nothing_is_told() -> None:
    ensemble = create(converser.Selection(allow=("read_*", "raed_file"), deny=("drop_*",)))
    assert [remark for remark in ensemble.remarks if "matches no tool" in remark] == [
        "The pattern 'raed_file' in the selection of ensemble 'disk' matches no tool.",
        "The pattern 'drop_*' in the selection of ensemble 'disk' matches no tool.",
    ]


def test_a_literal_name_with_brackets_is_not_called_idle() -> None:
    assert create(converser.Selection(allow=("odd[1]",))).remarks == ()


def test_a_hidden_tool_takes_no_name_from_others() -> None:
    naming = converser.Naming(renames={"write_file": "read_file"})
    configuration = converser.EnsembleConfiguration(
        naming=naming, selection=converser.Selection(deny=("read_file",))
    )
    ensemble = converser.Ensemble(
        "disk",
        tools=[(converser.Tool(name=name), do_nothing) for name in ("read_file", "write_file")],
        configuration=configuration,
    )
    assert ensemble.invokers["read_file"].tool.name == "write_file"
