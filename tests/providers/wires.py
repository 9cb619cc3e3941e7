# SPDX-License-Identifier: Apache-2.0
"""How each service speaks: streams and errors as the real ones send them, and what a request says.

Each wire writes an answer as two lists of frames: what comes before the stop reason, and the rest.
"""

from __future__ import annotations

import json

from converser.immutables import EMPTY, freeze
from converser.models import access_model
from tests.providers.service import frame

THOUGHT = "Let me think."
SIGNATURE = "c2lnbmVk"


class Wire:
    """What the contract needs of each service."""

    name = ""
    provider = ""
    package = ""
    path = ""
    options = EMPTY
    key_variable = ""
    malformed = b'data: {"type": \n\n'
    holds_answers_beside_tools = True

    extras = EMPTY

    def access(self, service, model="model-1", **options):
        url = service.url + self.path
        options = {"base_url": url, **self.options, **options}
        return access_model(f"{self.provider}:{model}", **options)

    def access_without_key(self):
        return access_model(f"{self.provider}:model-1", **self.options)

    def error(self, status, message):
        return {"error": {"message": message, "type": "error", "code": str(status)}}

    def listing(self, *names):
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}


class AnthropicWire(Wire):
    name = provider = package = "anthropic"
    extras = freeze({"thinking": {"type": "adaptive"}})
    key_variable = "ANTHROPIC_API_KEY"
    malformed = b'event: content_block_delta\ndata: {"type": \n\n'

    def listing(self, *names):
        data = [
            {
                "id": name,
                "type": "model",
                "display_name": name,
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in names
        ]
        return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def error(self, status, message):
        kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
        error = {"type": kinds.get(status, "api_error"), "message": message}
        return {"type": "error", "error": error, "request_id": "req_1"}

    def answer(self, text="", calls=(), thought=False, stop=None):
        usage = {"input_tokens": 12, "cache_read_input_tokens": 8, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "model-1-x"}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        frames = [self._event("message_start", message=message), self._event("ping")]
        for index, (block, deltas) in enumerate(self._blocks(text, calls, thought)):
            frames.append(self._event("content_block_start", index=index, content_block=block))
            frames += [
                self._event("content_block_delta", index=index, delta=delta) for delta in deltas
            ]
            frames.append(self._event("content_block_stop", index=index))
        reason = {"length": "max_tokens", "filtered": "refusal", "paused": "pause_turn"}.get(
            stop, "tool_use" if calls else "end_turn"
        )
        delta = {"stop_reason": reason, "stop_sequence": None}
        end = self._event("message_delta", delta=delta, usage={"output_tokens": 5})
        return frames, [end, self._event("message_stop")]

    def _event(self, kind, **data):
        return frame({"type": kind, **data}, event=kind)

    def _blocks(self, text, calls, thought):
        if thought:
            deltas = [
                {"type": "thinking_delta", "thinking": part} for part in ("Let me ", "think.")
            ]
            deltas.append({"type": "signature_delta", "signature": SIGNATURE})
            yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
        if text:
            parts = (text[:3], text[3:])
            deltas = [{"type": "text_delta", "text": part} for part in parts if part]
            yield {"type": "text", "text": ""}, deltas
        for identifier, name, arguments in calls:
            written = json.dumps(arguments)
            deltas = [
                {"type": "input_json_delta", "partial_json": part}
                for part in ("", written[:4], written[4:])
            ]
            yield {"type": "tool_use", "id": identifier, "name": name, "input": {}}, deltas

    def tools(self, body):
        return [(tool["name"], tool["input_schema"]) for tool in body.get("tools", ())]

    def _read(self, body, kind):
        return [
            block
            for message in body["messages"]
            for block in message["content"]
            if block["type"] == kind
        ]

    def calls(self, body):
        return [(b["id"], b["name"], b["input"]) for b in self._read(body, "tool_use")]

    def results(self, body):
        return [
            (b["tool_use_id"], json.dumps(b["content"])) for b in self._read(body, "tool_result")
        ]

    def images(self, body):
        results = self._read(body, "tool_result")
        blocks = [b for r in results if isinstance(r["content"], list) for b in r["content"]]
        return [b["source"]["data"] for b in blocks if b["type"] == "image"]

    def thoughts(self, body):
        return [(b["thinking"], b["signature"]) for b in self._read(body, "thinking")]

    def instructions(self, body):
        return [block["text"] for block in body.get("system", ())]

    def words(self, body):
        return [block["text"] for block in self._read(body, "text")]

    def controls(self, body):
        return body["temperature"], body["max_tokens"]

    def form(self, body):
        return body.get("output_config", {}).get("format", {}).get("schema")
