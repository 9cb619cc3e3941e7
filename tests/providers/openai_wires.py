# SPDX-License-Identifier: Apache-2.0
"""OpenAI's two wires: Responses, and Chat Completions as compatible servers speak them too."""

from __future__ import annotations

import json

from converser.immutables import freeze
from tests.providers.service import frame
from tests.providers.wires import SIGNATURE, THOUGHT, Wire


def find_images(text):
    return [part.split('"')[0] for part in text.split("data:image/png;base64,")[1:]]


class ResponsesWire(Wire):
    name = "responses"
    provider = package = "openai"
    path = "/v1"
    key_variable = "OPENAI_API_KEY"
    options = freeze({"api": "responses"})
    extras = freeze({"reasoning": {"effort": "low"}})
    malformed = b'event: response.output_text.delta\ndata: {"type": \n\n'

    def answer(self, text="", calls=(), thought=False, stop=None, searching=None):
        items = list(self._items(text, calls, thought, searching))
        frames = [self._event("response.created", response=self._response("in_progress", []))]
        for index, (item, deltas) in enumerate(items):
            empty = {**item, "status": "in_progress"}
            frames.append(self._event("response.output_item.added", output_index=index, item=empty))
            frames += [
                self._event(kind, item_id=item["id"], output_index=index, **data)
                for kind, data in deltas
            ]
            frames.append(self._event("response.output_item.done", output_index=index, item=item))
        status = "incomplete" if stop else "completed"
        output = [item for item, _ in items]
        response = self._response(status, output)
        if stop:
            reason = {"length": "max_output_tokens", "filtered": "content_filter"}[stop]
            response["incomplete_details"] = {"reason": reason}
        return frames, [self._event(f"response.{status}", response=response)]

    def _event(self, kind, **data):
        return frame({"type": kind, "sequence_number": 1, **data}, event=kind)

    def _response(self, status, output):
        usage = {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25}
        usage["input_tokens_details"] = {"cached_tokens": 8, "cache_write_tokens": 0}
        usage["output_tokens_details"] = {"reasoning_tokens": 2}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "model-1-x"}
        response |= {"status": status, "output": output, "error": None, "incomplete_details": None}
        response |= {"instructions": None, "metadata": {}, "parallel_tool_calls": True}
        response |= {"temperature": 1.0, "top_p": 1.0, "tools": [], "tool_choice": "auto"}
        return {**response, "usage": None if status == "in_progress" else usage}

    def _items(self, text, calls, thought, searching):
        if thought:
            summary = [{"type": "summary_text", "text": THOUGHT}]
            item = {"id": "rs_1", "type": "reasoning", "summary": summary, "status": "completed"}
            deltas = [
                ("response.reasoning_summary_text.delta", {"delta": part, "summary_index": 0})
                for part in ("Let me ", "think.")
            ]
            yield {**item, "encrypted_content": SIGNATURE}, deltas
        if text:
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            item = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
            deltas = [
                ("response.output_text.delta", {"delta": part, "content_index": 0, "logprobs": []})
                for part in (text[:3], text[3:])
                if part
            ]
            yield {**item, "status": "completed"}, deltas
        for identifier, name, arguments in calls:
            if name == searching:
                item = {
                    "id": f"tsc_{identifier}",
                    "type": "tool_search_call",
                    "call_id": identifier,
                }
                item |= {"execution": "client", "status": "completed", "arguments": arguments}
                yield item, []
                continue
            written = json.dumps(arguments)
            item = {"id": f"fc_{identifier}", "type": "function_call", "status": "completed"}
            item |= {"namespace": name} if searching else {}
            item |= {"call_id": identifier, "name": name, "arguments": written}
            kind = "response.function_call_arguments"
            yield (
                item,
                [
                    (f"{kind}.delta", {"delta": written}),
                    (f"{kind}.done", {"arguments": written, "name": name}),
                ],
            )

    def tools(self, body):
        return [(tool["name"], tool["parameters"]) for tool in body.get("tools", ())]

    def _read(self, body, kind):
        return [item for item in body["input"] if item["type"] == kind]

    def calls(self, body):
        return [
            (item["call_id"], item["name"], json.loads(item["arguments"]))
            for item in self._read(body, "function_call")
        ]

    def results(self, body):
        return [
            (item["call_id"], json.dumps(item["output"]))
            for item in self._read(body, "function_call_output")
        ]

    def images(self, body):
        return find_images(json.dumps(self._read(body, "function_call_output")))

    def thoughts(self, body):
        return [
            (item["summary"][0]["text"], item["encrypted_content"])
            for item in self._read(body, "reasoning")
        ]

    def _messages(self, body, *roles):
        texts = []
        for item in self._read(body, "message"):
            if item["role"] in roles:
                content = item["content"]
                parts = [{"text": content}] if isinstance(content, str) else content
                texts += [part["text"] for part in parts if "text" in part]
        return texts

    def instructions(self, body):
        return self._messages(body, "system")

    def words(self, body):
        return self._messages(body, "user", "assistant")

    def controls(self, body):
        return body["temperature"], body["max_output_tokens"]

    def form(self, body):
        return body.get("text", {}).get("format", {}).get("schema")


class ChatWire(Wire):
    name = "chat"
    provider = package = "openai"
    path = "/v1"
    key_variable = "OPENAI_API_KEY"
    options = freeze({"api": "chat"})
    extras = freeze({"min_p": 0.1})
    holds_answers_beside_tools = False

    def answer(self, text="", calls=(), thought=False, stop=None):
        frames = [self._chunk({"role": "assistant", "content": ""})]
        if thought:
            frames.append(self._chunk({"reasoning_content": THOUGHT}))
        frames += [self._chunk({"content": part}) for part in (text[:3], text[3:]) if part]
        for index, (identifier, name, arguments) in enumerate(calls):
            written = json.dumps(arguments)
            for head, piece in (({"id": identifier, "type": "function"}, ""), ({}, written)):
                function = {"name": name if head else None, "arguments": piece}
                frames.append(
                    self._chunk({"tool_calls": [{"index": index, **head, "function": function}]})
                )
        reason = {"length": "length", "filtered": "content_filter"}.get(
            stop, "tool_calls" if calls else "stop"
        )
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        usage["prompt_tokens_details"] = {"cached_tokens": 8}
        after = [self._chunk({}, reason), self._chunk(None, usage=usage), frame("[DONE]")]
        return frames, after

    def _chunk(self, delta, finish=None, usage=None):
        shared = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "model-1-x"}
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        return frame({**shared, "choices": choices, "usage": usage})

    def tools(self, body):
        functions = [tool["function"] for tool in body.get("tools", ())]
        return [(function["name"], function["parameters"]) for function in functions]

    def calls(self, body):
        return [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
            for message in body["messages"]
            for c in message.get("tool_calls", ())
        ]

    def results(self, body):
        return [
            (m["tool_call_id"], json.dumps(m["content"]))
            for m in body["messages"]
            if m["role"] == "tool"
        ]

    def images(self, body):
        *_, result, shown = body["messages"]
        assert (result["role"], shown["role"]) == ("tool", "user")
        return find_images(json.dumps(shown))

    def _messages(self, body, *roles):
        return [m["content"] for m in body["messages"] if m["role"] in roles and m["content"]]

    def thoughts(self, body):
        thoughts = [m["reasoning_content"] for m in body["messages"] if "reasoning_content" in m]
        return [(thought, SIGNATURE) for thought in thoughts]  # They are not signed.

    def instructions(self, body):
        return self._messages(body, "system")

    def words(self, body):
        return self._messages(body, "user", "assistant")

    def controls(self, body):
        return body["temperature"], body["max_tokens"]

    def form(self, body):
        return body.get("response_format", {}).get("json_schema", {}).get("schema")
