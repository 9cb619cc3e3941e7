# SPDX-License-Identifier: Apache-2.0
"""Gemini's wire: whole responses as pieces, and signatures on the parts of an answer.

The SDK writes some names as `camelCase` and some not; the service takes both.
"""

from __future__ import annotations

import json

from converser.immutables import freeze
from tests.providers.service import frame
from tests.providers.wires import SIGNATURE, THOUGHT, Wire


class GoogleWire(Wire):
    name = provider = "google"
    package = "google.genai"
    key_variable = "GEMINI_API_KEY"
    extras = freeze({"cachedContent": "cachedContents/1"})
    malformed = b'data: {"candidates": [\n\n'

    def listing(self, *names):
        return {"models": [{"name": f"models/{name}"} for name in names]}

    def error(self, status, message):
        kinds = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        kind = kinds.get(status, "INTERNAL" if status >= 500 else "INVALID_ARGUMENT")
        return {"error": {"code": status, "message": message, "status": kind}}

    def answer(self, text="", calls=(), thought=False, stop=None):
        frames = []
        signature = {"thoughtSignature": SIGNATURE} if thought else {}
        if thought:
            frames += [self._chunk({"text": p, "thought": True}) for p in ("Let me ", "think.")]
        frames += [self._chunk({"text": part}) for part in (text[:3], text[3:]) if part]
        for identifier, name, arguments in calls:
            call = {"id": identifier, "name": name, "args": arguments}
            frames.append(self._chunk({"functionCall": call, **signature}))
            signature = {}
        reason = {"length": "MAX_TOKENS", "filtered": "SAFETY"}.get(stop, "STOP")
        return frames or [self._chunk({"text": ""})], [self._chunk({"text": ""}, reason)]

    def _chunk(self, part, finish=None):
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        usage = {"promptTokenCount": 20, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
        usage |= {"cachedContentTokenCount": 8, "totalTokenCount": 25}
        response = {"candidates": [candidate], "modelVersion": "model-1-x", "responseId": "r1"}
        return frame({**response, "usageMetadata": usage})

    def tools(self, body):
        declarations = [d for tool in body.get("tools", ()) for d in tool["functionDeclarations"]]
        return [(d["name"], d["parameters_json_schema"]) for d in declarations]

    def _read(self, body, key):
        return [part[key] for c in body["contents"] for part in c["parts"] if key in part]

    def calls(self, body):
        return [
            (call["id"], call["name"], call["args"]) for call in self._read(body, "functionCall")
        ]

    def results(self, body):
        return [
            (response["id"], json.dumps(response["response"]))
            for response in self._read(body, "functionResponse")
        ]

    def images(self, body):
        parts = [p for r in self._read(body, "functionResponse") for p in r.get("parts", ())]
        return [part["inline_data"]["data"] for part in parts]

    def thoughts(self, body):
        parts = [part for content in body["contents"] for part in content["parts"]]
        texts = [part["text"] for part in parts if part.get("thought")]
        signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
        kept = [signature for signature in signatures if signature == SIGNATURE]
        assert texts in ([], [THOUGHT])
        return list(zip(texts, kept, strict=True))

    def instructions(self, body):
        return [part["text"] for part in body.get("systemInstruction", {}).get("parts", ())]

    def words(self, body):
        parts = [part for content in body["contents"] for part in content["parts"]]
        return [part["text"] for part in parts if part.get("text") and not part.get("thought")]

    def controls(self, body):
        config = body["generationConfig"]
        return config["temperature"], config["maxOutputTokens"]

    def form(self, body):
        return body.get("generationConfig", {}).get("responseJsonSchema")
