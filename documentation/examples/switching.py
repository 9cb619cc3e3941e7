# SPDX-License-Identifier: Apache-2.0
"""One conversation with three providers, tool calls and all; `llmock` stands for their services: no key is needed."""

import asyncio
import json

from llmock.scenarios import Reply, ToolCall
from llmock.testing import LLMockServer

import converser


def get_depth(fjord: str) -> str:
    """Tells how deep a fjord is."""
    return f"{fjord}: {len(fjord) * 100} m"


async def main() -> None:
    fjords = converser.create_local_ensemble("fjords", [get_depth])
    with LLMockServer() as services:
        services.state.scenarios.add(
            Reply(tool_calls=(ToolCall("get_depth", {"fjord": "Sognefjord"}),)),
            Reply(text="It is 1000 m deep."),
            Reply(tool_calls=(ToolCall("get_depth", {"fjord": "Oslofjord"}),)),
            Reply(text="This one has 900 m."),
            Reply(text="The Sognefjord is the deeper one."),
        )
        # Without base_url these are the services themselves, and the keys come from the environment.
        url = services.base_url
        places = {
            "anthropic:claude-sonnet-5": {"base_url": url("anthropic")},
            "openai:gpt-5.4": {"base_url": url("openai"), "api": "responses"},
            "ollama:qwen3": {"base_url": url("openai")},
        }
        questions = ["How deep is the Sognefjord?", "And the Oslofjord?", "Which is deeper?"]
        saved = "[]"
        for (name, options), question in zip(places.items(), questions, strict=True):
            transcript = converser.Transcript(map(converser.load_canister, json.loads(saved)))
            transcript.append(converser.user(question))
            async with converser.access_model(name, key="no-key", **options) as model:
                reply = await model.converse(transcript, ensembles=[fjords])
            print(f"{name}: {reply.text} ({len(transcript)} canisters)")
            # What was said can wait on disk meanwhile: nothing is lost.
            saved = json.dumps([converser.dump_canister(canister) for canister in transcript])


if __name__ == "__main__":
    asyncio.run(main())
