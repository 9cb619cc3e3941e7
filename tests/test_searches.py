# SPDX-License-Identifier: Apache-2.0
"""Finding tools by keyword: the ranking is BM25, and ten thousand tools are no burden."""

from __future__ import annotations

import itertools
import math
import time
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from converser.ensembles import Ensemble, EnsembleConfiguration
from converser.invokers import Annotations, InvocationResult, Tool
from converser.naming import Naming
from converser.searches import ToolIndex, index_ensemble, search_tools, split_words


async def nothing(_, __):
    return InvocationResult()


def make_tools(name, *tools, prefix=None):
    configuration = EnsembleConfiguration(naming=Naming(prefix=prefix))
    return Ensemble(name, tools=[(tool, nothing) for tool in tools], configuration=configuration)


OFFICE = make_tools(
    "office",
    Tool(name="createCalendarEvent", description="Puts an appointment into a calendar."),
    Tool(name="list_events", description="Tells what is in a calendar."),
    Tool(name="send_mail", description="Sends a message.", annotations=Annotations(title="Post")),
    Tool(
        name="translate",
        description="Translates words.",
        arguments_schema={"type": "object", "properties": {"targetLanguage": {}}},
    ),
)


def find(query, *ensembles, limit=5):
    return search_tools([index_ensemble(each) for each in ensembles or (OFFICE,)], query, limit)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create an event", "createCalendarEvent"),
        ("EVENTS list", "list_events"),
        ("mails", "send_mail"),
        ("post", "send_mail"),
        ("language", "translate"),
        ("createCalendarEvent", "createCalendarEvent"),
        ("appointment", "createCalendarEvent"),
    ],
)
def test_a_tool_is_found_by_its_name_its_title_its_description_and_its_parameters(query, best):
    assert find(query)[0] == best


WORLD = make_tools(
    "world",
    Tool(name="zh", description="查询城市的天气预报"),
    Tool(name="zh_mail", description="发送电子邮件给联系人"),
    Tool(name="ja", description="東京の現在時刻を取得します"),
    Tool(name="ko", description="도시의 날씨를 조회합니다"),
    Tool(name="th", description="ดูพยากรณ์อากาศของเมือง"),
    Tool(name="hi", description="शहर का मौसम बताता है"),
    Tool(name="hi_day", description="कैलेंडर में घटना बनाता है"),
    Tool(name="ta", description="நாட்காட்டியில் நிகழ்வு"),
    Tool(name="ar", description="إنشاء حدث في التقويم"),
    Tool(name="he", description="יוֹצֵר אירוע בלוח השנה"),
    Tool(name="fr", description="Donne la météo d'une ville"),
    Tool(name="tr", description="İSTANBUL'da hava durumu"),
    Tool(name="ru", description="Создаёт письмо"),
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("天气", "zh"),
        ("今天天气怎么样", "zh"),
        ("邮件", "zh_mail"),
        ("現在時刻", "ja"),
        ("날씨", "ko"),
        ("อากาศ", "th"),
        ("मौसम", "hi"),
        ("कैलेंडर", "hi_day"),
        ("நிகழ்வு", "ta"),
        ("حَدَث", "ar"),
        ("انشاء", "ar"),
        ("יוצר", "he"),
        ("meteo", "fr"),
        ("MÉTÉO", "fr"),
        (unicodedata.normalize("NFD", "météo"), "fr"),
        ("istanbul", "tr"),
        ("создает", "ru"),
        ("ｍｅｔｅｏ", "fr"),
    ],
)
def test_a_tool_is_found_in_the_languages_of_the_world(query, best):
    assert find(query, WORLD)[0] == best


@pytest.mark.parametrize("query", ["कल", "दाम", "நகை", "تحديث"])
def test_words_are_no_heaps_of_letters_where_vowels_are_marks(query):
    assert find(query, WORLD) == []


BRANDS = make_tools(
    "brands",
    Tool(name="github_search", description="Finds code."),
    Tool(name="gitStatus", description="Tells what is changed in the branches."),
    Tool(name="videoList", description="Lists what is on YouTube, by categories."),
    Tool(name="OAuth2Login", description="Opens the boxes."),
    Tool(name="поиск_файлов"),
    Tool(name="検索"),
)


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("GitHub", "github_search"),
        ("github", "github_search"),
        ("git", "gitStatus"),
        ("youtube", "videoList"),
        ("YouTube", "videoList"),
        ("category", "videoList"),
        ("branch", "gitStatus"),
        ("a box", "OAuth2Login"),
        ("поиск", "поиск_файлов"),
        ("検索", "検索"),
    ],
)
def test_a_tool_is_found_however_its_name_is_written_and_whatever_it_is_called_on_the_wire(
    query, best
):
    assert BRANDS.access_invoker(find(query, BRANDS)[0]).tool.name == best


@pytest.mark.parametrize("query", ["", "!?", "submarine", "雨", "음악"])
def test_words_that_no_tool_has_find_nothing(query):
    assert find(query) == []


def test_an_ensembles_name_finds_its_tools_and_no_more_than_wanted():
    assert len(find("office")) == 4
    assert len(find("office", limit=2)) == 2


def test_several_ensembles_are_searched_as_one():
    sea = make_tools("sea", Tool(name="mail_boat", description="When the boat with the post goes."))
    assert set(find("mail", OFFICE, sea)) == {"send_mail", "mail_boat"}
    assert find("boat mail", OFFICE, sea)[0] == "mail_boat"


def test_an_index_is_kept_until_the_tools_change():
    ensemble = make_tools("one", Tool(name="a"))
    first = index_ensemble(ensemble)
    assert index_ensemble(ensemble) is first
    ensemble._adopt([(Tool(name="b"), nothing)])
    assert index_ensemble(ensemble) is not first
    assert find("b", ensemble) == ["b"]


def test_words_are_split_as_people_read_names():
    assert split_words("getHTTPResponses_v2 for-Straße") == [
        "get", "http", "response", "v2", "for", "strasse"
    ]  # fmt: skip
    assert split_words("directories boxes branches passes databases ties class") == [
        "directory", "box", "branch", "pass", "database", "tie", "class"
    ]  # fmt: skip


def test_ten_thousand_tools_are_searched_quickly():
    words = ["file", "mail", "boat", "event", "table", "row", "branch", "issue", "page", "image"]
    tools = [
        Tool(
            name=f"{words[n % 10]}_{words[n // 10 % 10]}_{n}",
            description=f"Does a thing with the {words[n // 100 % 10]} of {words[n // 1000]} {n}.",
        )
        for n in range(10_000)
    ]
    ensemble = make_tools("many", *tools)
    begun = time.perf_counter()
    index_ensemble(ensemble)
    indexed = time.perf_counter()
    assert find("mail boat 4211", ensemble)[0] == "mail_mail_4211"
    # Both take a fraction of this; a machine may be busy.
    assert time.perf_counter() - indexed < 1
    assert indexed - begun < 5


WORDS = st.sampled_from(["mail", "boat", "file", "row", "tax", "ice"])
PHRASES = st.lists(WORDS, max_size=6).map(" ".join)


def rank_plainly(texts, query):
    """BM25 as the books have it, word by word."""
    documents = [Counter(split_words(text)) for text in texts]
    lengths = [sum(each.values()) for each in documents]
    average = sum(lengths) / len(lengths)
    scores = {}
    for number, document in enumerate(documents):
        for word in sorted(set(split_words(query))):
            holders = sum(word in each for each in documents)
            idf = math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
            tf = document[word]
            if tf:
                norm = 1.2 * (0.25 + 0.75 * lengths[number] / average)
                scores[number] = scores.get(number, 0) + idf * tf * 2.2 / (tf + norm)
    return scores


@given(st.lists(PHRASES, min_size=1, max_size=8), st.integers(0, 8), PHRASES)
def test_the_ranking_is_that_of_bm25_however_the_tools_are_spread(phrases, cut, query):
    tools = [
        (f"t{number}", Tool(name=f"t{number}", description=text))
        for number, text in enumerate(phrases)
    ]
    ensembles = [
        make_tools("x", *(tool for _, tool in part)) for part in (tools[:cut], tools[cut:])
    ]
    indexes = [ToolIndex(each.invokers.values()) for each in ensembles]
    found = search_tools(indexes, query, 100)
    # The name counts three times, and the ensemble's name once.
    texts = [f"{text} x{f' t{number}' * 3}" for number, text in enumerate(phrases)]
    scores = rank_plainly(texts, query)
    assert sorted(found) == sorted(f"t{number}" for number in scores)
    ranked = [scores[int(name[1:])] for name in found]
    assert all(a >= b or math.isclose(a, b) for a, b in itertools.pairwise(ranked))
