# SPDX-License-Identifier: Apache-2.0
"""Large results and unseen images: the model gets a part and a handle, history keeps everything."""

from __future__ import annotations

import re

import anyio
import pytest
from hypothesis import given, strategies as st

import converser
from converser.canisters import InvocationCanister, ResultCanister, user
from converser.contents import BlobContent, ImageContent, LinkContent, TextualContent
from converser.costs import BYTES_PER_TOKEN
from converser.digests import Digest
from converser.ensembles import Ensemble
from converser.exceptions import ConfigurationFailure, ToolExecutionFailure
from converser.invokers import NO_CONTEXT, InvocationResult, Tool
from converser.models import Model
from converser.outcomes import Outcome
from converser.replies import Limits
from converser.testing import ScriptedModel
from converser.turns import Capabilities, Transcript
from tests.conversations import (
    SpokenProvider,
    assert_valid,
    converse,
    echo,
    make_ensemble,
    results_of,
    saying,
)

pytestmark = pytest.mark.anyio

BUDGET = 250
LIMIT = BUDGET * BYTES_PER_TOKEN
LONG = "".join(f"line {number}\n" for number in range(1000))


def result(*contents, **fields):
    return ResultCanister(invocation_identifier="call", contents=contents, **fields)


def text(words):
    return TextualContent(text=words)


def digest(*canisters, vision=True):
    view = Digest(budget=BUDGET, vision=vision, reader="read_result")
    view.absorb(Transcript(canisters))
    return view


def find_handle(words):
    return re.search(r"\b(result|message)-\w+", words)[0]


async def read(view, **arguments):
    with anyio.fail_after(5):
        return (await view.read(NO_CONTEXT, arguments)).text


async def read_all(view, handle):
    """Reads a result as a model would: piece after piece."""
    pieces, offset = [], 0
    while True:
        head, piece = (await read(view, handle=handle, offset=offset)).split("\n", 1)
        pieces.append(piece)
        if (more := re.search(r"goes on at offset (\d+)", head)) is None:
            return "".join(pieces)
        offset = int(more[1])


async def long(_):
    return LONG


async def test_the_model_gets_head_tail_and_handle_and_history_keeps_the_result():
    model = ScriptedModel([[("long", {})], "Done."])
    reply = await converse(
        model, ensembles=[make_ensemble(long=long)], limits=Limits(result_budget=BUDGET)
    )
    assert results_of(reply)[0].text == LONG
    (seen,) = results_of(model.requests[1].canisters)
    assert len(seen.text) <= LIMIT
    assert seen.text.startswith("line 0\nline 1\n")
    assert seen.text.endswith("line 999\n")
    assert seen.identifier == results_of(reply)[0].identifier
    assert_valid(reply)


async def test_the_model_can_read_the_rest_with_a_tool_that_is_there_only_then():
    def read_on(canisters):
        words = results_of(canisters)[1].text
        return [("read_result", {"handle": find_handle(words), "offset": 5000})]

    def search(canisters):
        words = results_of(canisters)[1].text
        return [("read_result", {"handle": find_handle(words), "search": "LINE 777"})]

    model = ScriptedModel([[("echo", {})], [("long", {})], read_on, search, "Done."])
    tools = make_ensemble(echo=echo, long=long)
    reply = await converse(model, ensembles=[tools], limits=Limits(result_budget=BUDGET))
    offered = [list(request.invokers) for request in model.requests]
    assert offered == [["echo", "long"]] * 2 + [["echo", "long", "read_result"]] * 3
    assert model.requests[2].invokers is model.requests[4].invokers
    assert LONG[5000:5100] in results_of(reply)[2].text
    assert "line 777\nline 778" in results_of(reply)[3].text
    # What was read is within the budget, so it is not shortened again.
    assert results_of(model.requests[4].canisters)[2:] == results_of(reply)[2:]


async def test_what_a_model_saw_stays_the_same_in_the_next_conversation_and_after_reloading():
    model = ScriptedModel([[("long", {})], "Done.", "Hello again."])
    transcript = Transcript([user("Go.")])
    options = {"limits": Limits(result_budget=BUDGET), "ensembles": [make_ensemble(long=long)]}
    await converse(model, transcript, **options)
    transcript.append(user("Hello?"))
    await converse(model, transcript, **options)
    before, after = model.requests[1], model.requests[2]
    assert list(after.canisters)[: len(before.canisters)] == list(before.canisters)
    # The tool that reads is there from the first turn on, as there is something to read.
    assert list(after.invokers) == ["long", "read_result"]
    reloaded = [converser.load_canister(converser.dump_canister(each)) for each in transcript]
    assert list(digest(*reloaded)) == list(digest(*transcript))


async def test_no_budget_sends_everything():
    model = ScriptedModel([[("long", {})], "Done."])
    options = {"ensembles": [make_ensemble(long=long)], "limits": Limits(result_budget=None)}
    await converse(model, **options)
    assert results_of(model.requests[1].canisters)[0].text == LONG
    assert "read_result" not in model.requests[1].invokers


def test_a_budget_too_small_for_a_note_is_refused():
    with pytest.raises(ConfigurationFailure, match="result_budget"):
        Limits(result_budget=10)


async def test_a_tool_of_the_users_keeps_its_name():
    async def read_result(_):
        return "mine"

    def read_both(canisters):
        handle = find_handle(results_of(canisters)[0].text)
        return [("read_result", {}), ("converser_read_result", {"handle": handle})]

    model = ScriptedModel([[("long", {})], read_both, "Done."])
    tools = make_ensemble(long=long, read_result=read_result)
    reply = await converse(model, ensembles=[tools], limits=Limits(result_budget=BUDGET))
    assert "call converser_read_result" in results_of(model.requests[1].canisters)[0].text
    assert results_of(reply)[1].text == "mine"
    assert "line 0\n" in results_of(reply)[2].text


async def test_a_wrong_handle_or_offset_is_an_error_that_helps():
    view = digest(result(text(LONG)))
    handle = find_handle(view[0].text)
    with pytest.raises(ToolExecutionFailure, match=f"no shortened result 'x'.*{handle}"):
        await read(view, handle="x")
    with pytest.raises(ToolExecutionFailure, match=f"only {len(LONG)} characters"):
        await read(view, handle=handle, offset=len(LONG))
    with pytest.raises(ToolExecutionFailure, match="does not occur") as caught:
        await read(view, handle=handle, search="line 5\n", offset=500)
    assert caught.value.outcome is Outcome.INVALID


async def test_structured_data_and_errors_are_shortened_and_readable_too():
    data = result(structured={"rows": ["value"] * 1000})
    broken = result(error="trace " * 1000, outcome=Outcome.TOOL_ERROR)
    view = digest(data, broken)
    assert all(len(seen.text) + len(seen.error or "") <= LIMIT for seen in view)
    assert view[0].structured is None
    assert view[1].error.startswith("trace ")
    whole = await read_all(view, find_handle(view[0].text))
    assert whole.startswith('{"rows": ["value"')
    assert whole.endswith('"value"]}')
    assert await read_all(view, find_handle(view[1].text)) == broken.error


def test_what_is_no_text_stays_beside_the_shortened_text():
    image = ImageContent(data=b"\x89PNG", mimetype="image/png")
    (seen,) = digest(result(image, text(LONG)))
    assert seen.contents[1:] == (image,)


async def test_links_are_words_and_thousands_of_them_are_shortened_and_readable_too():
    links = [
        LinkContent(uri=f"file:///{at}", name=f"log {at}", description="Of one day.")
        for at in range(1000)
    ]
    view = digest(result(*links), result(links[0]))
    shown, single = view
    assert len(shown.text) <= LIMIT
    assert len(shown.contents) == 1
    words = await read_all(view, find_handle(shown.text))
    assert words.splitlines() == [link.describe() for link in links]
    assert single.contents == (links[0],)


async def test_a_model_without_vision_gets_a_note_in_the_place_of_an_image():
    image = ImageContent(data=b"\x89PNG", mimetype="image/png")

    class Blind(SpokenProvider):
        capabilities = Capabilities(vision=False)

    async def paint(_, __):
        return InvocationResult(contents=(text("Here:"), image))

    painted = Transcript([user("Look: ", image)])
    model = ScriptedModel([[("paint", {})], "Done."])
    ensembles = [Ensemble("art", tools=[(Tool(name="paint"), paint)])]
    await converse(model, painted, ensembles=ensembles)
    assert results_of(model.requests[1].canisters)[0].contents[1] is image
    provider = Blind(saying("I see nothing."))
    await converse(Model(provider), painted, ensembles=ensembles)
    seen = list(provider.requests[0].canisters)
    assert "image/png, 4 bytes, which you cannot see" in seen[0].contents[1].text
    assert find_handle(seen[0].contents[1].text) == f"message-{painted[0].identifier[:8]}"
    assert find_handle(seen[3].text) == f"result-{painted[3].identifier[:8]}"
    assert painted[3].contents[1] is image
    assert "read_result" not in provider.requests[0].invokers


def test_images_of_documents_are_told_of_too():
    image = ImageContent(data=b"\x89PNG", mimetype="image/png")
    given = converser.document("Map:", image, name="map")
    assert "which you cannot see" in digest(given, vision=False)[0].text
    assert digest(given)[0] is given


def test_small_data_beside_long_words_stay():
    small, large = {"tools": ["echo"]}, {"tools": ["echo"] * 1000}
    seen = digest(result(text(LONG), structured=small), result(text(LONG), structured=large))
    assert [each.structured for each in seen] == [small, None]


def test_handles_of_alike_identifiers_differ():
    one, other = (result(text(LONG), identifier=f"0123456789{end}") for end in "ab")
    first, second = digest(one, other)
    assert find_handle(first.text) == "result-01234567"
    assert find_handle(second.text) == "result-0123456789b"


ALPHABET = st.characters(exclude_categories=["Cs"])
CONTENTS = st.one_of(
    st.text(alphabet="aé…😀", max_size=60).map(lambda words: text(words * 30)),
    st.text(alphabet=ALPHABET, max_size=50).map(
        lambda words: BlobContent(data=(words * 30).encode("utf-8"), encoding="utf-8")
    ),
)
ERRORS = st.none() | st.text(alphabet="error ", min_size=1, max_size=50).map(lambda e: e * 40)


@given(st.lists(CONTENTS, max_size=4), ERRORS)
async def test_whatever_the_result_it_is_sent_within_the_budget_and_nothing_is_lost(parts, error):
    outcome = Outcome.SUCCESS if error is None else Outcome.TOOL_ERROR
    canister = result(*parts, error=error, outcome=outcome)
    view = digest(canister, InvocationCanister(name="x"))
    (seen, _) = view
    if not view.has_more:
        assert seen is canister
        return
    assert len((seen.text + (seen.error or "")).encode()) <= LIMIT
    words = [part.text for part in parts] + ([] if error is None else [error])
    assert await read_all(view, re.search(r"handle \"(\S+)\"", seen.text)[1]) == "\n".join(words)


def test_a_result_has_one_handle_for_its_words_and_its_images():
    contents = (TextualContent(text="x" * 5000), ImageContent(data=b"p", mimetype="image/png"))
    canister = ResultCanister(invocation_identifier="i", contents=contents)
    view = digest(canister, vision=False)
    handles = set(re.findall(r"result-\w+", view[0].text))
    assert handles == {f"result-{canister.identifier[:8]}"}


async def test_a_budget_counts_what_a_character_takes():
    """Three bytes, and about a token, for each of these; by characters, it would be four times too much."""
    words = "".join(chr(0x4E00 + number % 5000) for number in range(2000))
    view = digest(result(text(words)))
    shown = view[0].text
    assert LIMIT // 2 < len(shown.encode()) <= LIMIT
    assert (shown[:100], shown[-50:]) == (words[:100], words[-50:])
    assert await read_all(view, find_handle(shown)) == words
    assert (await read(view, handle=find_handle(shown), offset=5, length=3)).endswith(words[5:8])
