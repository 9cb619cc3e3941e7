# SPDX-License-Identifier: Apache-2.0
"""A conversation leaves the store whole: as Markdown, as JSON, and as a page in which nothing that was said can act."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode, b64encode
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import converser
from converser import (
    AssistantCanister,
    AudioContent,
    BlobContent,
    ConversationStore,
    ImageContent,
    InvocationCanister,
    LinkContent,
    Outcome,
    ResultCanister,
    TextualContent,
    Usage,
    assistant,
    decode_canister,
    document,
    export_conversation,
    supervisor,
    user,
)
from tests.test_codec import any_canister

PICTURE = ImageContent(data=b"\x89PNG picture", mimetype="image/png")
HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\x1b[2J\u202e"\'&'
TAGS = (
    "html head meta title style body header h1 h2 h3 h4 h5 h6 dl div dt dd main ol ul li time"
    " details summary span pre p a code em strong s blockquote hr br table thead tbody tr th td"
    " figure img figcaption audio svg rect footer"
)
ATTRIBUTES = (
    "lang charset http-equiv content name class id href datetime title open src alt width height"
    " rx aria-hidden rel controls download start"
)


class Page(HTMLParser):
    """What a browser would make of a page, as far as that matters here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.style = ""
        self.feed(text)
        self.close()
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "style" and not self.style:
            self.style = data
        else:
            self.words.append(data)

    def find(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [
            found
            for kind, found in self.elements
            if kind == tag and attributes.items() <= found.items()
        ]


def assert_harmless(page: Page) -> None:
    """Only our own elements, and nothing that loads, runs or sends."""
    assert {tag for tag, _ in page.elements} <= {*TAGS.split()}
    for tag, attributes in page.elements:
        assert attributes.keys() <= {*ATTRIBUTES.split()}, tag
        source = attributes.get("src") or "data:image/png;"
        assert re.match(r"data:(image|audio)/[a-z0-9.+-]+;", source)
        target = attributes.get("href") or "#"
        assert re.match(r"#c\d|#$|https?://|mailto:|data:application/octet-stream;", target, re.I)
    digest = b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    (policy,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
    assert policy["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; media-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


@pytest.fixture
def store(tmp_path: Path) -> ConversationStore:
    return ConversationStore(tmp_path)


def export_page(store: ConversationStore, *canisters: converser.Canister, **more: str) -> Page:
    page = Page(export_conversation(store.create(canisters, **more), "html"))
    assert_harmless(page)
    return page


def make_conversation() -> list[converser.Canister]:
    call = InvocationCanister(identifier="c", name="weather__map", arguments={"city": "Oslo"})
    return [
        supervisor("Be brief."),
        document("not too steep", name="wishes.md"),
        user("Where to?"),
        AssistantCanister(model="m:1", usage=Usage(tokens_in=1_204, tokens_out=96)),
        call,
        ResultCanister(
            invocation_identifier="c",
            contents=(TextualContent(text="sunny"), PICTURE),
            structured={"degrees": 2},
            duration=3.87,
        ),
        assistant("To **Vettakollen**."),
    ]


def test_the_page_has_every_message_call_argument_result_image_duration_and_token(store):
    page = export_page(store, *make_conversation(), name="A hike")
    expected = (
        "A hike",
        "Be brief.",
        "wishes.md",
        "Where to?",
        "m:1",
        "1,204 tokens in, 96 out",
        "weather__map",
        '{"city": "Oslo"}',
        "sunny",
        '{"degrees": 2}',
        "3.9 s",
        "To Vettakollen .",
    )
    assert [words for words in expected if words not in page.text] == []
    (picture,) = page.find("img")
    assert b64decode((picture["src"] or "").partition(",")[2]) == PICTURE.data
    assert [each["id"] for each in page.find("li")] == [f"c{n}" for n in (1, 2, 3, 4, 5, 7)]
    assert len(page.find("strong")) == 1


def test_a_model_is_named_at_its_words_only_where_it_is_another_one(store):
    one, other = (AssistantCanister(model=name) for name in ("m:1", "m:2"))
    page = export_page(store, one, other, one)
    assert (page.text.count("m:1"), page.text.count("m:2")) == (1, 1)
    assert page.text.count("Assistant") == 2


def test_a_failed_call_is_open_and_says_how_it_failed(store):
    call = InvocationCanister(identifier="c", name="n")
    failed = ResultCanister(invocation_identifier="c", outcome=Outcome.TIMED_OUT, error="Too late.")
    page = export_page(store, call, failed)
    assert "timed out" in page.text
    assert "Too late." in page.text
    assert len([each for each in page.find("details") if "open" in each]) == 1
    alone = export_page(store, call)
    assert "no result" in alone.text
    orphan = export_page(store, failed)
    assert "A result without its call" in orphan.text


def test_each_canister_is_told_once_though_identifiers_repeat(store):
    call = InvocationCanister(identifier="same", name="n")
    results = [
        ResultCanister(invocation_identifier="same", contents=(TextualContent(text=f"no{number}"),))
        for number in range(3)
    ]
    page = export_page(store, call, results[0], call, results[1], results[2])
    assert [page.text.count(f"no{number}") for number in range(3)] == [1, 1, 1]


def make_hostile(text: str) -> list[converser.Canister]:
    """A text in every place where one can be."""
    contents = (
        TextualContent(text=text, mimetype=text),
        ImageContent(data=b"x", mimetype=text),
        ImageContent(data=b"x", mimetype="image/png"),
        AudioContent(data=b"x", mimetype=text),
        AudioContent(data=b"x", mimetype="audio/wav"),
        BlobContent(data=b"x", mimetype=text, name=text, uri=text),
        BlobContent(data=text.encode("utf-8", "surrogatepass"), name=text, encoding="utf-8"),
        LinkContent(uri=text, name=text, title=text),
        LinkContent(uri=f"https://example.org/{text}", name=text),
        converser.UnknownContent(kind=text, reason=text),
    )
    return [
        converser.UserCanister(contents=contents),
        converser.SupervisorCanister(contents=contents),
        converser.DocumentCanister(contents=contents, name=text),
        AssistantCanister(contents=contents, model=text),
        InvocationCanister(identifier="c", name=text, arguments={text: [text]}),
        ResultCanister(
            invocation_identifier="c",
            outcome=Outcome.TOOL_ERROR,
            error=text,
            contents=contents,
            structured={text: text},
        ),
        converser.UnknownCanister(kind=text, data={text: text}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "javascript:alert(1)",
        "[x](javascript:alert(1)) ![y](https://evil.example/y.png) <https://evil.example>",
        "</style><script>alert(1)</script>",
        "data:text/html,<script>alert(1)</script>",
        "image/png;base64,x\" onerror='alert(1)",
        "\ud800 \udfff",
        "a&#x202e;b&#27;c&NewLine;d",
        "[hidden]: https://evil.example",
        'http://x/" onclick="alert(1)',
    ],
)
def test_whatever_was_said_is_only_text_on_the_page(store, text):
    page = export_page(store, *make_hostile(text), name=text, model=text, servers=[text])
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", page.text)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(canisters=st.lists(any_canister, max_size=4), text=st.text(st.characters(), max_size=30))
def test_any_conversation_can_be_exported_in_every_format(store, canisters, text):
    conversation = store.create([*canisters, *make_hostile(text)], name=text)
    page = export_conversation(conversation, "html")
    assert_harmless(Page(page))
    page.encode()
    export_conversation(conversation, "md").encode()
    data = json.loads(export_conversation(conversation, "json"))
    # JSON takes two halves of a character, side by side, for the character.
    expected = [json.loads(json.dumps(converser.encode_canister(each))) for each in canisters]
    assert data["canisters"][: len(canisters)] == expected
    assert [*map(decode_canister, data["canisters"])]


def test_json_has_all_that_is_known_and_no_character_that_could_do_harm(store):
    conversation = store.create([user(HOSTILE)], name="n", model="m", servers=["s"], tags=["t"])
    text = export_conversation(conversation, converser.ExportFormat.JSON)
    assert text.isascii()
    assert text.isprintable() or "\x1b" not in text
    data = json.loads(text)
    known = ("identifier", "name", "model", "servers", "tags", "parent")
    assert [data[key] for key in known] == [conversation.identifier, "n", "m", ["s"], ["t"], ""]
    assert decode_canister(data["canisters"][0]).text == HOSTILE


def test_markdown_has_answers_as_they_are_and_the_words_of_tools_in_fences(store):
    text = export_conversation(store.create(make_conversation(), name="A *hike*"), "md")
    assert text.startswith("# A \\*hike\\*\n")
    assert "## User\n\nWhere to?\n" in text
    assert "\nTo **Vettakollen**.\n" in text
    assert '### Call of `weather__map`, 3.9 s\n\n```json\n{"city": "Oslo"}\n```\n' in text
    assert "\n```\nsunny\n```\n\n![image/png, 12 bytes][image-1]\n" in text
    encoded = b64encode(PICTURE.data).decode()
    assert text.endswith(f"\n[image-1]: data:image/png;base64,{encoded}\n")


def test_nothing_in_a_result_can_end_its_fence(store):
    result = ResultCanister(
        invocation_identifier="c", contents=(TextualContent(text="```\n## User\n````\nfake"),)
    )
    text = export_conversation(store.create([result]), "md")
    assert "\n`````\n```\n## User\n````\nfake\n`````\n" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0004, "under 1 ms"),
        (0.0421, "42 ms"),
        (0.0999, "0.1 s"),
        (59.4, "59.4 s"),
        (125.2, "2 min 5 s"),
    ],
)
def test_durations_are_as_precise_as_is_of_use(store, seconds, words):
    call = InvocationCanister(identifier="c", name="n")
    result = ResultCanister(invocation_identifier="c", duration=seconds)
    conversation = store.create([call, result])
    assert f"### Call of `n`, {words}\n" in export_conversation(conversation, "md")
    assert words in Page(export_conversation(conversation, "html")).text


def test_a_fence_that_is_closed_is_left_as_it_is(store):
    fenced = "~~~\n```\n~~~\n\n```py\nx = 1\n``` py\n```"
    text = export_conversation(store.create([assistant(fenced), user("Go on.")]), "md")
    assert f"{fenced}\n\n## User\n" in text


def test_an_answer_that_was_cut_off_in_a_fence_does_not_swallow_the_rest(store):
    text = export_conversation(store.create([assistant("```py\nx = 1"), user("Go on.")]), "md")
    assert "```py\nx = 1\n```\n\n## User\n" in text


def test_damaged_content_is_left_out_and_remarked(store):
    conversation = store.create([user("look", PICTURE)])
    next(path for path in store.folder.glob("contents/*/*") if path.is_file()).unlink()
    page = Page(export_conversation(conversation, "html"))
    assert "look" in page.text
    assert "is lost" in page.text
    assert len(conversation.remarks) == 1


def test_an_unknown_format_is_a_mistake(store):
    with pytest.raises(ValueError, match="pdf"):
        export_conversation(store.create(), "pdf")
