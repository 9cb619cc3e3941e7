# SPDX-License-Identifier: Apache-2.0
"""Halves of characters are replaced wherever they stand, and nothing else is touched."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from converser.canisters import InvocationCanister, ResultCanister, UnknownCanister, document, user
from converser.characters import purify, purify_canister
from converser.codec import dump_canister
from converser.contents import BlobContent, ImageContent, LinkContent, TextualContent
from converser.outcomes import Outcome

HALF = "\ud83d"
TEXTS = st.text(alphabet=st.characters(categories=("L", "Cs", "So")), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


@given(VALUES)
def test_what_comes_out_can_be_sent_and_what_could_be_sent_is_the_same_object(value):
    pure = purify(value)
    text = json.dumps(pure, ensure_ascii=False)
    text.encode()
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        assert "\ufffd" in text
    else:
        assert pure is value


def test_canisters_are_the_same_or_pure_in_every_place():
    whole = [
        user("Ja \N{WAVING HAND SIGN}", ImageContent(data=b"x", mimetype="image/png")),
        InvocationCanister(name="t", arguments={"a": ["ø"]}),
        ResultCanister(
            invocation_identifier="i", structured={"a": 1}, outcome=Outcome.TOOL_ERROR, error="no"
        ),
        UnknownCanister(kind="new"),
    ]
    assert all(purify_canister(canister) is canister for canister in whole)
    blob = BlobContent(
        data=HALF.encode("utf-8", "surrogatepass"), mimetype="text/plain", encoding="utf-8"
    )
    link = LinkContent(uri="file:///x", name=HALF, title=HALF)
    broken = [
        document(TextualContent(text=HALF), blob, link),
        InvocationCanister(name=HALF, arguments={HALF: HALF}),
        ResultCanister(
            invocation_identifier="i",
            structured={"a": [HALF]},
            outcome=Outcome.TOOL_ERROR,
            error=HALF,
        ),
    ]
    for canister in broken:
        pure = purify_canister(canister)
        json.dumps(dump_canister(pure), ensure_ascii=False).encode()
        assert pure.identifier == canister.identifier
    first = purify_canister(broken[0])
    assert [part.text for part in first.contents[:2]] == ["\ufffd", "\ufffd"]
    assert (first.contents[2].name, first.contents[2].title) == ("\ufffd", "\ufffd")
