# SPDX-License-Identifier: Apache-2.0
"""Servers that die, hang, or do not die when they should."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from overstdio.sound import ECHO, JSON, TROUBLE, Server, count_notes, hold, note, text_result


class SilentFromTheStart(Server):
    def take(self, message: JSON) -> None:
        """No answer to anything."""


class DeafFromTheStart(SilentFromTheStart):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SilentListing(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        """No answer."""


class NeverReads(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        super().on_tools_list(number, params)
        hold()


class Dies(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        sys.stderr.write("out of cheese\n")
        sys.stderr.flush()
        os._exit(3)


class DiesOnce(Server):
    tools = [ECHO, {**TROUBLE, "annotations": {"readOnlyHint": True}}]  # noqa: RUF012

    def trouble(self, number: Any, arguments: JSON) -> None:
        note("called")
        if count_notes("called") == 1:
            os._exit(3)
        self.reply(number, text_result("fine"))


class HangsWhenBack(DiesOnce):
    def on_initialize(self, number: Any, params: JSON) -> None:
        if count_notes("start") > 1:
            return
        super().on_initialize(number, params)


class StumblesWhenBack(DiesOnce):
    def on_initialize(self, number: Any, params: JSON) -> None:
        if 1 < count_notes("start") <= 4:
            os._exit(5)
        super().on_initialize(number, params)


class DiesAgainAndAgain(Server):
    def on_tools_list(self, number: Any, params: JSON) -> None:
        super().on_tools_list(number, params)
        os._exit(4)

    def trouble(self, number: Any, arguments: JSON) -> None:
        os._exit(4)


class ClosesStdout(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        os.close(1)
        hold()


class ClosesStdin(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        os.close(0)
        self.reply(number, text_result("fine"))
        hold()


class ExitsAtStart(Server):
    def serve(self) -> None:
        sys.stderr.write("config.yaml: no such file\n")
        sys.stderr.flush()
        os._exit(2)


class ChildHoldsThePipe(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        if os.fork() == 0:
            hold()
        os._exit(0)


class KeeperIsKilled(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        """A child holds the pipe for longer than the caller waits; nobody is left to end it, so it ends by itself."""
        if os.fork() == 0:
            time.sleep(2.5)
            os._exit(0)
        os.kill(os.getppid(), signal.SIGKILL)
        hold()


class KeeperIsStopped(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        os.kill(os.getppid(), signal.SIGSTOP)
        self.reply(number, text_result("fine"))


class IgnoresTheEnd(Server):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SetsidGrandchildren(Server):
    def trouble(self, number: Any, arguments: JSON) -> None:
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() != 0:
                    os._exit(0)
                hold()
        self.reply(number, text_result("fine"))


class Nasty(SetsidGrandchildren):
    def serve(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        super().serve()
        hold()


class SlowStart(Server):
    def serve(self) -> None:
        time.sleep(1.5)
        super().serve()


class IgnoresUnknownMethods(Server):
    def on_unknown(self, number: Any, method: str) -> None:
        note("ignored")


class DiesOfUnknownMethods(Server):
    def on_unknown(self, number: Any, method: str) -> None:
        os._exit(5)


class UnsupportedVersion(Server):
    version = "1999-01-01"


class MalformedHandshake(Server):
    def on_initialize(self, number: Any, params: JSON) -> None:
        self.reply(number, {"protocolVersion": 7, "capabilities": []})
