# SPDX-License-Identifier: Apache-2.0
"""From a name, a configuration, or nothing at all, to a model; and providers that others bring."""

from __future__ import annotations

import socket
import threading
import time
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import tomli

from converser.configuration import load_configuration
from converser.exceptions import ConfigurationFailure, ModelFailure
from converser.models import access_model
from converser.providers.automatic import CLOUDS, Chooser, list_local_models
from converser.providers.registry import GROUP, OURS, find_factory
from tests.conversations import converse
from tests.providers.openai_wires import ChatWire
from tests.providers.scenes import Stage

pytest.importorskip("openai", reason="needs the extra 'openai'")
pytestmark = pytest.mark.anyio
WIRE = ChatWire()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for cloud in CLOUDS:
        for name in cloud.variables:
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def service():
    with Stage(WIRE, "text-embedder", "qwen3:8b") as service:
        yield service


@pytest.fixture
def configure(tmp_path):
    def write(text):
        path = tmp_path / "converser.toml"
        path.write_text(text)
        return load_configuration(path)

    return write


def choose(environment=(), models=(), lacking=(), tables=None):
    return Chooser(
        tables=tables or {},
        environment=dict.fromkeys(environment, "sk-SECRET"),
        list_models=dict(models).get,
        is_installed=lambda package: package not in lacking,
    ).choose()


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("ANTHROPIC_API_KEY", "anthropic"),
        ("OPENAI_API_KEY", "openai"),
        ("GEMINI_API_KEY", "google"),
        ("GOOGLE_API_KEY", "google"),
    ],
)
def test_a_key_in_the_environment_decides_and_is_named_as_the_reason(variable, provider):
    choice = choose([variable])
    assert choice.provider == provider
    assert choice.model
    assert variable in choice.reason
    assert "SECRET" not in choice.reason


def test_a_key_without_its_package_is_passed_over_and_said_so():
    choice = choose(["ANTHROPIC_API_KEY", "OPENAI_API_KEY"], lacking=["anthropic"])
    assert choice.provider == "openai"
    assert "mcp-converser[anthropic]" in choice.reason


def test_without_a_key_a_server_that_answers_with_a_model_is_taken():
    servers = {
        "http://127.0.0.1:11434/v1": [],
        "http://127.0.0.1:8080/v1": None,
        "http://127.0.0.1:1234/v1": ["nomic-embed", "bge-m3", "phi"],
    }
    choice = choose(models=servers)
    assert (choice.provider, choice.model) == ("lmstudio", "phi")
    assert "LM Studio answers at http://127.0.0.1:1234/v1" in choice.reason
    assert "Ollama answers" in choice.reason
    assert "No key is set" in choice.reason


def test_with_neither_the_embedded_model_is_taken_and_labelled():
    choice = choose()
    assert choice.provider == "embedded"
    assert "demonstration" in choice.reason
    assert "No key is set (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY)" in choice.reason


def test_with_nothing_at_all_every_way_is_named():
    with pytest.raises(ModelFailure, match=r"No key is set.*'openai'.*Set one of the keys.*Ollama"):
        choose(lacking=["openai", "xllamacpp"])


def test_the_configuration_has_keys_and_models_for_the_choice():
    tables = {"google": {"key": "env:MINE", "model": "gemini-x"}}
    choice = choose(tables=tables)
    assert (choice.provider, choice.model) == ("google", "gemini-x")
    assert "MINE" not in choice.reason


def test_a_server_at_the_name_of_a_service_is_taken_with_its_model_and_not_for_the_service_s_key():
    table = {"base_url": "http://models.example/v1"}
    choice = choose(["OPENAI_API_KEY"], tables={"openai": {**table, "model": "m"}})
    assert choice.reason == "openai:m: its address is in the configuration."
    choice = choose(["OPENAI_API_KEY"], tables={"openai": table})
    assert choice.provider == "embedded"
    assert "For openai, base_url names a server, but no model is." in choice.reason
    assert "No key is set" not in choice.reason
    choice = choose(["OPENAI_API_KEY"], tables={"openai": {"base_url": HOMES[0][2]}})
    assert choice.reason.endswith(": OPENAI_API_KEY is set.")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("claude-sonnet-5", "'anthropic:claude-sonnet-5'"),
        ("gpt-5.5", "'openai:gpt-5.5'"),
        ("openai/gpt-5.5", "'openai:gpt-5.5'"),
        ("Gemini:gemini-3.8-flash", "'google'"),
    ],
)
def test_a_model_without_its_provider_is_told_with_it(name, meant):
    with pytest.raises(ModelFailure, match=rf"Did you mean {meant}\?"):
        access_model(name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[model]\nnme = "ollama:x"', r"'nme', but names no model\. Write name = "),
        ('[model]\nprovider = "openai"\nmodel = "m"', r"'provider', but names no model"),
        (
            '[model]\nname = "mine:m"\n[provider.mine]\nkey = "k"',
            r'not say what it is\. .*"openai"',
        ),
        (
            '[model]\nname = "openai:m"\n[provider]\nopenai = "k"',
            r"Write it as \[provider.openai\]",
        ),
    ],
)
def test_tables_that_do_not_say_enough_are_told_with_what_to_write(configure, text, words):
    with pytest.raises(ModelFailure, match=words):
        access_model(configuration=configure(text))


def test_only_a_server_that_answers_like_one_counts(service):
    assert list_local_models(service.url) == ["text-embedder", "qwen3:8b"]
    for listing in ({"data": [{}]}, {"hello": 1}, [1], "x"):
        service.listing = listing
        assert list_local_models(service.url) is None
    service.close()
    assert list_local_models(service.url) is None


@pytest.fixture
def listener():
    """A function that has something answer at a port, and goes on with it; gives the address."""
    with ExitStack() as stack:

        def listen(answer, drip=b""):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            thread = threading.Thread(target=_answer, args=(server, answer, drip))
            thread.start()
            stack.callback(thread.join, 10)
            return f"http://127.0.0.1:{server.getsockname()[1]}/v1"

        yield listen


def _answer(server, answer, drip):
    connection, _ = server.accept()
    with connection, suppress(OSError):
        connection.recv(10_000)
        connection.sendall(answer)
        while drip:
            connection.sendall(drip)
            threading.Event().wait(0.05)


_HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        _HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        _HEAD + b"\r\n" + b"[" * 100_000,
    ],
    ids=["no-http", "broken", "deep"],
)
def test_whatever_answers_at_a_usual_port_is_passed_over(listener, answer):
    assert list_local_models(listener(answer)) is None


def test_a_server_that_never_ends_its_listing_is_not_waited_for(listener):
    begun = time.monotonic()
    assert list_local_models(listener(_HEAD + b"\r\n", drip=b" ")) is None
    assert time.monotonic() - begun < 5


def test_auto_passes_over_a_key_that_is_not_set_and_says_so(service, configure, monkeypatch):
    monkeypatch.delenv("WORK_KEY", raising=False)
    text = '[provider.anthropic]\nkey = "env:WORK_KEY"\n'
    configuration = configure(f'{text}[provider.ollama]\nbase_url = "{service.url}"\n')
    model = access_model("auto", configuration=configuration, report=lambda _: None)
    assert model.name == "ollama:qwen3:8b"
    assert "WORK_KEY is not set" in model.reason


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google", "ollama"])
@pytest.mark.parametrize(
    "url", ["localhost:1234/v1", "http://", "http://h:port", "http://h:99999", "ftp://h", ""]
)
def test_what_is_no_address_is_refused_at_once(provider, url):
    with pytest.raises(ModelFailure, match=r"base_url.*not an address.*http://HOST"):
        access_model(f"{provider}:m", base_url=url)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "google"])
@pytest.mark.parametrize("key", ["sk-\u2026SECRET", "sk-\nSECRET"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(provider, key):
    with pytest.raises(ModelFailure, match="characters that no key has") as caught:
        access_model(f"{provider}:m", key=key)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


HOMES = (
    ("openai:m", "OPENAI_API_KEY", "https://eu.api.openai.com/v1"),
    ("anthropic:m", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
    ("google:m", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
)


@pytest.mark.parametrize(("name", "variable", "url"), HOMES)
def test_a_service_gets_its_key_from_the_environment_also_where_its_address_is_named(
    monkeypatch, name, variable, url
):
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with pytest.raises(ModelFailure, match=variable):
        access_model(name, base_url=url)
    assert access_model(name, base_url=url.replace(".com", ".com.example")) is not None
    monkeypatch.setenv(variable, "sk-mine")
    model = access_model(name, base_url=url)
    assert model._provider._service.key.value == "sk-mine"


async def test_white_space_round_a_key_is_not_part_of_it(service):
    service.will_answer("Hello.")
    async with access_model("openai:m", base_url=service.url, key=" sk-mine\n") as model:
        await converse(model)
    assert service.requests[0][1]["authorization"] == "Bearer sk-mine"


def test_an_option_of_the_wrong_kind_is_told(configure):
    configuration = configure('[provider.openai]\nkey = "k"\nretries = "3"\n')
    with pytest.raises(ModelFailure, match=r"cannot be made.*integer.*options.*retries"):
        access_model("openai:m", configuration=configuration)


async def test_auto_finds_a_real_server_reports_it_and_converses(service, configure):
    configuration = configure(f'[provider.ollama]\nbase_url = "{service.url}"\n')
    told = []
    service.will_answer("Hello.")
    async with access_model("auto", configuration=configuration, report=told.append) as model:
        assert (await converse(model)).text == "Hello."
    assert model.name == "ollama:qwen3:8b"
    assert service.bodies[0]["model"] == "qwen3:8b"
    assert told == [f"Model: {model.reason}"]
    assert service.url in model.reason


def test_auto_is_the_default_and_tells_standard_error(monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET")
    model = access_model()
    assert model.name.startswith("openai:")
    errors = capsys.readouterr().err
    assert "OPENAI_API_KEY is set" in errors
    assert "SECRET" not in errors


async def test_the_configuration_names_the_model_and_providers_of_one_s_own(
    service, configure, monkeypatch
):
    monkeypatch.setenv("WORK_KEY", "sk-work")
    monkeypatch.setenv("WORK_URL", service.url)
    configuration = configure(
        """
        [model]
        name = "work:qwen"
        retries = 1
        [provider.work]
        type = "openai"
        base_url = "env:WORK_URL"
        key = "env:WORK_KEY"
        model = "usual"
        """
    )
    for name, expected in ((None, "qwen"), ("work", "usual"), ("work:other", "other")):
        service.will_answer("Hello.")
        async with access_model(name, configuration=configuration) as model:
            await converse(model)
        _, headers, body = service.requests[-1]
        assert body["model"] == expected
        assert headers["authorization"] == "Bearer sk-work"
    service.will_answer("Hello.")
    async with access_model("work", configuration=configuration, key="sk-mine") as model:
        await converse(model)
    assert service.requests[-1][1]["authorization"] == "Bearer sk-mine"


def test_mistakes_in_the_configuration_are_told_without_secrets(configure, monkeypatch):
    monkeypatch.delenv("WORK_KEY", raising=False)
    missing = configure('[provider.openai]\nkey = "env:WORK_KEY"\n')
    with pytest.raises(ConfigurationFailure, match=r"provider\.openai\.key.*WORK_KEY"):
        access_model("openai:m", configuration=missing)
    strange = configure('[provider.openai]\nkey = "sk-SECRET"\nspeed = 3\n')
    with pytest.raises(ModelFailure, match="'speed'") as caught:
        access_model("openai:m", configuration=strange)
    assert "SECRET" not in str(caught.value)


def test_a_model_that_is_not_named_is_asked_for_unless_there_is_a_usual_one(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert access_model("openai").name == "openai:gpt-5.5"
    with pytest.raises(ModelFailure, match=r"given no model.*ollama:NAME"):
        access_model("ollama")
    with pytest.raises(ModelFailure, match=r"given no model.*openai:NAME"):
        access_model("openai", base_url="http://127.0.0.1:1")


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package with entry points, and one of them tries to take a name of ours."""
    (tmp_path / "echoing.py").write_text(
        "class Echo:\n"
        "    def __init__(self, model, **options):\n"
        "        self.name, self.options = f'echo:{model}', options\n"
    )
    folder = tmp_path / "echoing-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: echoing\nVersion: 1.0\n")
    points = "echo = echoing:Echo\nopenai = echoing:Echo\nlost = nowhere_at_all:Thing\n"
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\n{points}")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("package")
def test_other_packages_bring_providers_by_entry_points():
    model = access_model("echo:loud", volume=11)
    assert model.name == "echo:loud"
    assert model._provider.options == {"volume": 11}
    assert access_model("echo").name == "echo:"
    assert "echoing" not in find_factory("openai").__module__
    with pytest.raises(ModelFailure, match=r"'lost'.*nowhere_at_all.*ModuleNotFoundError"):
        access_model("lost:x")
    with pytest.raises(ModelFailure, match=r"'ecko'.*Did you mean 'echo'"):
        access_model("ecko:x")


def test_ours_are_registered_in_the_same_way():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    registered = tomli.loads(text)["project"]["entry-points"][GROUP]
    assert registered == {name: f"converser.providers.{place}" for name, place in OURS.items()}
    for name in OURS:
        assert callable(find_factory(name))
