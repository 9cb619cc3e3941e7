# SPDX-License-Identifier: Apache-2.0
"""Many tools: all are sent within the budget; over it, the model searches, and what it found stays at hand."""

from __future__ import annotations

import itertools

import pytest

import converser
from converser.canisters import InvocationCanister, ResultCanister, user
from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.exceptions import ConfigurationFailure
from converser.invokers import InvocationResult, Tool
from converser.outcomes import Outcome
from converser.replies import Limits
from converser.testing import ScriptedModel
from converser.toolboxes import Toolbox
from converser.turns import Capabilities, Transcript
from tests.conversations import assert_valid, converse, make_ensemble, results_of

pytestmark = pytest.mark.anyio

ANIMALS = ("badger", "camel", "dolphin", "eagle", "ferret", "gecko", "heron", "ibis", "jackal")


async def answer(_, __):
    return InvocationResult()


def make_zoo(*names, pinned=(), name="zoo"):
    tools = [
        (Tool(name=f"feed_{each}", description=f"Gives food to the {each}."), answer)
        for each in names or ANIMALS
    ]
    return Ensemble(name, tools=tools, configuration=EnsembleConfiguration(pinned=pinned))


COST = max(make_zoo().cost().values())
TIGHT = Limits(tools_budget=4 * COST)


def search(*words, **options):
    return ("search_tools", {"query": " ".join(words), **options})


def offered(model):
    return [list(request.invokers) for request in model.requests]


async def test_within_the_budget_all_tools_are_sent():
    model, zoo = ScriptedModel(["Done."]), make_zoo()
    await converse(model, ensembles=[zoo], limits=Limits(tools_budget=sum(zoo.cost().values())))
    assert offered(model) == [list(zoo.invokers)]


async def test_over_the_budget_the_pinned_ones_and_a_search_are_sent_and_what_is_found_is_appended():
    script = [
        [search("dolphin")],
        [("feed_dolphin", {})],
        [search("camel", "food", limit=2), search("submarine")],
        [("feed_camel", {})],
        "Done.",
    ]
    model = ScriptedModel(script)
    reply = await converse(model, ensembles=[make_zoo(pinned=("*_gecko",))], limits=TIGHT)
    start = ["feed_gecko", "search_tools"]
    sets = offered(model)
    assert sets[0] == start
    assert sets[1] == sets[2] == [*start, "feed_dolphin"]
    assert model.requests[1].invokers is model.requests[2].invokers
    assert sets[3][:4] == [*start, "feed_dolphin", "feed_camel"]
    assert sets[4] == sets[3]
    found, fed, _, nothing, _ = results_of(reply)
    assert "feed_dolphin: Gives food to the dolphin." in found.text
    assert found.structured == {"tools": ["feed_dolphin"]}
    assert fed.outcome is Outcome.SUCCESS
    assert "No tool fits" in nothing.text
    assert_valid(reply)


async def test_the_search_says_how_many_tools_there_are_and_whence():
    model = ScriptedModel(["Done."])
    zoos = [make_zoo(), make_zoo("wolf", name="park")]
    await converse(model, ensembles=zoos, limits=TIGHT)
    words = model.requests[0].invokers["search_tools"].description
    assert "10 more" in words
    assert "zoo (9), park (1)" in words
    await converse(
        pinned := ScriptedModel(["Done."]), ensembles=[make_zoo(pinned=("*_i*",))], limits=TIGHT
    )
    assert "8 more" in pinned.requests[0].invokers["search_tools"].description


async def test_a_tool_that_is_known_by_name_can_be_called_without_a_search_and_is_then_at_hand():
    model = ScriptedModel([[("feed_heron", {})], [("feed_unicorn", {})], "Done."])
    reply = await converse(model, ensembles=[make_zoo()], limits=TIGHT)
    assert [r.outcome for r in results_of(reply)] == [Outcome.SUCCESS, Outcome.INVALID]
    assert offered(model)[1] == ["search_tools", "feed_heron"]


async def test_who_calls_a_tool_that_is_not_there_is_told_of_the_search_where_there_is_one():
    model = ScriptedModel([[("github_merge", {})], "Done."])
    (absent,) = results_of(await converse(model, ensembles=[make_zoo()], limits=TIGHT))
    assert "Find others with 'search_tools'" in absent.error
    model = ScriptedModel([[("github_merge", {})], "Done."])
    (absent,) = results_of(await converse(model, ensembles=[make_zoo()]))
    assert "search_tools" not in absent.error


async def test_the_tools_at_hand_follow_from_the_conversation_also_when_it_is_reloaded():
    model = ScriptedModel([[search("ibis")], [("feed_eagle", {})], "Done."])
    transcript = Transcript([user("Go.")])
    await converse(model, transcript, ensembles=[make_zoo()], limits=TIGHT)
    reloaded = [converser.load_canister(converser.dump_canister(each)) for each in transcript]
    later = ScriptedModel(["Hello."])
    await converse(later, reloaded, ensembles=[make_zoo()], limits=TIGHT)
    assert offered(later)[0] == offered(model)[-1] == ["search_tools", "feed_ibis", "feed_eagle"]


async def test_what_was_not_wanted_for_longest_goes_when_the_budget_is_full():
    calls = [[(f"feed_{animal}", {})] for animal in (*ANIMALS[:4], ANIMALS[0], *ANIMALS[4:7])]
    model = ScriptedModel([*calls, "Done."])
    await converse(model, ensembles=[make_zoo()], limits=TIGHT)
    sets = offered(model)
    for names in sets:
        assert sum(make_zoo().cost()[name] for name in names[1:]) <= TIGHT.tools_budget
    assert sets[4][1:] == [f"feed_{animal}" for animal in ANIMALS[:4]]
    # The first was wanted again, so it outlives the second; the order of those that stay, stays.
    assert sets[6][1:] == ["feed_badger", "feed_ferret"]
    assert sets[5] is not sets[6]
    # It grows only at its end, but for that one time.
    grown = [b[: len(a)] == a for a, b in itertools.pairwise(sets)]
    assert grown.count(False) == 1


async def test_all_that_several_searches_of_one_turn_found_is_at_hand():
    pairs = (ANIMALS[:3], ANIMALS[3:6], ANIMALS[6:])
    model = ScriptedModel([[search(*words) for words in pairs], "Done."])
    await converse(model, ensembles=[make_zoo()], limits=TIGHT)
    assert set(offered(model)[1]) == {"search_tools", *(f"feed_{each}" for each in ANIMALS)}


async def test_what_was_found_stays_where_its_definition_is_part_of_the_conversation():
    script = [[search(animal)] for animal in ANIMALS]
    model = ScriptedModel([*script, "Done."], capabilities=Capabilities(deferral=True))
    await converse(model, ensembles=[make_zoo()], limits=TIGHT)
    assert offered(model)[-1] == ["search_tools", *(f"feed_{animal}" for animal in ANIMALS)]


async def test_no_more_tools_than_a_service_takes_are_sent_whatever_was_found():
    capabilities = Capabilities(tools_max=6)
    script = [[search(*ANIMALS[:3]), search(*ANIMALS[3:])], [search(*ANIMALS, limit=20)], "Done."]
    model = ScriptedModel(script, capabilities=capabilities)
    await converse(model, ensembles=[make_zoo()])
    assert [len(names) for names in offered(model)[1:]] == [5, 5]


async def test_tools_that_are_pinned_and_found_are_no_more_than_a_service_takes():
    model = ScriptedModel([[search(*ANIMALS[4:])], "Done."], capabilities=Capabilities(tools_max=8))
    await converse(model, ensembles=[make_zoo(pinned=("feed_[a-e]*",))])
    pinned = [f"feed_{animal}" for animal in ANIMALS[:4]]
    assert offered(model)[0] == [*pinned, "search_tools"]
    assert offered(model)[1][:5] == offered(model)[0]
    assert 5 < len(offered(model)[1]) <= 8


async def test_pinned_tools_that_fill_the_budget_leave_a_place_for_what_is_found():
    script = [[search("ibis", "jackal")], [("feed_ibis", {})], "Done."]
    model, zoo = ScriptedModel(script), make_zoo(pinned=("feed_[a-h]*",))
    await converse(model, ensembles=[zoo], limits=Limits(tools_budget=8 * COST))
    assert set(offered(model)[1][8:]) == {"feed_ibis", "feed_jackal"}
    assert offered(model)[2] == offered(model)[1]


async def test_a_found_tool_is_told_of_in_a_few_words_and_its_definition_has_them_all():
    wordy = Tool(name="wordy", description="word " * 500)
    model = ScriptedModel([[search("word")], "Done."])
    reply = await converse(
        model, ensembles=[Ensemble("wordy", tools=[(wordy, answer)])], limits=TIGHT
    )
    assert len(results_of(reply)[0].text) < 300
    assert model.requests[1].invokers["wordy"].description == wordy.description


def absorb(*canisters, ensembles=None):
    toolbox = Toolbox(ensembles or [make_zoo()], budget=TIGHT.tools_budget)
    toolbox.survey(Transcript(canisters))
    return list(toolbox.invokers)


@pytest.mark.parametrize(
    "structured", [None, [], {}, {"tools": 5}, {"tools": [7, None]}, {"tools": ["no_such"]}]
)
def test_a_strange_result_of_a_search_in_a_foreign_conversation_harms_nothing(structured):
    call = InvocationCanister(name="search_tools")
    told = ResultCanister(invocation_identifier=call.identifier, structured=structured)
    assert absorb(call, told) == ["search_tools"]


def test_only_a_search_makes_tools_available():
    call = InvocationCanister(name="feed_camel")
    sly = ResultCanister(
        invocation_identifier=call.identifier, structured={"tools": ["feed_eagle"]}
    )
    assert absorb(call, sly) == ["search_tools", "feed_camel"]


def test_tools_that_vanish_or_come_settle_the_set_anew():
    zoo = make_zoo()
    toolbox = Toolbox([zoo], budget=TIGHT.tools_budget)
    view = Transcript([InvocationCanister(name="feed_camel")])
    toolbox.survey(view)
    before = toolbox.invokers
    toolbox.survey(view)
    assert toolbox.invokers is before
    zoo._adopt([(i.tool, i.invocable) for i in make_zoo("wolf", "yak").invokers.values()])
    toolbox.survey(view)
    assert list(toolbox.invokers) == ["feed_wolf", "feed_yak"]


async def test_a_tool_of_the_users_keeps_its_name_also_beside_the_search():
    async def search_tools(_):
        return "mine"

    pinned = EnsembleConfiguration(pinned=("*",))
    mine = make_ensemble(configuration=pinned, search_tools=search_tools)
    model = ScriptedModel(
        [[("search_tools", {})], [("converser_search_tools", {"query": "yak"})], "Done."]
    )
    reply = await converse(model, ensembles=[make_zoo(*ANIMALS, "yak"), mine], limits=TIGHT)
    assert results_of(reply)[0].text == "mine"
    assert results_of(reply)[1].structured == {"tools": ["feed_yak"]}


async def test_tools_of_the_users_keep_their_names_also_where_both_of_ours_are_taken():
    async def take(_):
        return "mine"

    names = ("search_tools", "converser_search_tools")
    pinned = EnsembleConfiguration(pinned=("*",))
    mine = make_ensemble(configuration=pinned, **dict.fromkeys(names, take))
    last = "converser_converser_search_tools"
    model = ScriptedModel([[*((name, {}) for name in names), (last, {"query": "yak"})], "Done."])
    reply = await converse(model, ensembles=[make_zoo(*ANIMALS, "yak"), mine], limits=TIGHT)
    assert [result.text for result in results_of(reply)[:2]] == ["mine"] * 2
    assert results_of(reply)[2].structured == {"tools": ["feed_yak"]}


async def test_a_model_of_small_means_gets_few_tools_and_short_results():
    small = Capabilities(tools_budget=4 * COST, result_budget=10)

    async def long(_):
        return "x" * 5000

    model = ScriptedModel([[("long", {})], "Done."], capabilities=small)
    await converse(model, ensembles=[make_zoo(), make_ensemble(long=long)])
    assert offered(model) == [["search_tools"], ["search_tools", "read_result", "long"]]
    assert len(results_of(model.requests[1].canisters)[0].text) <= 1000


def test_a_budget_below_nothing_is_refused():
    with pytest.raises(ConfigurationFailure, match="tools_budget"):
        Limits(tools_budget=-1)
