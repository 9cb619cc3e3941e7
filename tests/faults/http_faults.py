# SPDX-License-Identifier: Apache-2.0
"""The faults of servers over HTTP, and of the network between."""

from __future__ import annotations

from tests.faults.fault import Fault

_TIMED_OUT = {"sees": "MCPTimeoutFailure", "outcome": "timed-out", "words": "did not answer"}
_BROKEN = {"sees": "MCPProtocolFailure", "outcome": "outcome-unknown", "words": "Check whether"}
_LOST = {
    "sees": "MCPConnectionFailure",
    "outcome": "outcome-unknown",
    "words": "outcome is unknown",
}
_NO = {"sees": "MCPConnectionFailure"}


def _fault(name: str, story: str, server: str, transport: str = "http", **more: object) -> Fault:
    return Fault(name=name, story=story, server=server, transport=transport, **more)  # type: ignore[arg-type]


STATUSES = (
    _fault(
        "http-refused",
        "nobody listens",
        "Sound",
        act="nobody",
        words="cannot be reached",
        next_works=False,
        **_NO,
    ),
    _fault("http-401", "wants a token", "Status401", words="401.*token", next_works=False, **_NO),
    _fault("http-403", "forbids a call", "Status403", words="403", **_NO),
    _fault(
        "http-429", "asks to wait", "Status429", words="429.*wait 7 s", outcome="tool-error", **_NO
    ),
    _fault("http-500", "fails", "Status500", words="500.*Check", outcome="outcome-unknown", **_NO),
    _fault(
        "http-502", "a gateway fails", "Status502", words="502", outcome="outcome-unknown", **_NO
    ),
    _fault(
        "http-503", "is not there now", "Status503", words="503.*3 s", outcome="tool-error", **_NO
    ),
    _fault(
        "http-429-error",
        "asks to wait, with an error of the protocol",
        "Status429WithError",
        sees="MCPExecutionFailure",
        words="-32603: Too many. It asks to wait 7 s",
    ),
    _fault(
        "http-503-date",
        "tells when it is back",
        "Status503WithDate",
        words="503. It asks to wait until Wed, 21 Oct 2026 07:28:00 GMT\\.",
        outcome="tool-error",
        **_NO,
    ),
    _fault("http-418", "other JSON with a bad status", "Status418WithJson", words="418", **_NO),
    _fault("http-html", "a page to log in, with status 200", "Html", **_BROKEN),
    _fault("http-202", "accepts a call and gives no answer", "Accepted", **_BROKEN),
)

SESSIONS = (
    _fault("http-404", "forgets the session: a bare 404", "ForgetsTheSession"),
    _fault("http-404-python", "forgets it, as Python servers say it", "ForgetsLikePython"),
    _fault("http-404-typescript", "forgets it, as TypeScript servers do", "ForgetsLikeTypescript"),
    _fault("http-400-everything", "forgets it, and says 400", "ForgetsLikeEverything"),
    _fault("http-400-python", "forgets it, as Python did in 2025", "ForgetsLikeOlderPython"),
    _fault("http-400-restarted", "forgets that it was initialized", "ForgetsItsStart"),
    _fault(
        "http-ignores-unknown-methods",
        "an old server that ignores what it does not know",
        "IgnoresUnknownMethods",
        act="reconnect",
        connect_timeout=6.0,
        guard=45.0,
        at_least={"discover": 1},
        at_most={"discover": 2},
    ),
    _fault(
        "http-404-among-many",
        "forgets the session while five calls are under way",
        "ForgetsAmongMany",
        act="crowd",
    ),
    _fault(
        "http-talks-of-sessions",
        "a tool's own error that sounds like a lost session",
        "TalksOfSessions",
        sees="MCPExecutionFailure",
        words="tmux",
        at_most={"sessions": 1},
    ),
    _fault("http-restart", "restarts in the middle of a call", "Restarts", **_LOST),
    _fault("http-restart-modern", "the same in the newer era", "RestartsModern", **_LOST),
    _fault("http-down", "is away for a while", "GoesDown", act="wait", **_LOST),
    _fault("http-silent-goodbye", "does not answer a goodbye", "SilentGoodbye"),
    _fault("http-refuses-notifications", "fails at notifications", "RefusesNotifications"),
)

SILENCES = (
    _fault("http-silent", "never answers a call", "Silent", timeout=0.5, **_TIMED_OUT),
    _fault(
        "http-silent-modern", "the same in the newer era", "SilentModern", timeout=0.5, **_TIMED_OUT
    ),
    _fault(
        "http-silent-from-the-start",
        "never answers anything",
        "SilentFromTheStart",
        connect_timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault(
        "http-silent-to-notifications",
        "never answers a call, nor that it was cancelled",
        "SilentToNotifications",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault(
        "http-resets-notifications",
        "never answers a call, and breaks off when it is cancelled",
        "ResetsNotifications",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault(
        "http-silent-crowd",
        "never answers any of 120 calls",
        "Silent",
        act="crowd-of-calls",
        timeout=1.0,
        **_TIMED_OUT,
    ),
    _fault(
        "http-silent-events",
        "a stream of nothing but comments",
        "SilentEvents",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault("http-dripping-body", "a byte now and then", "DrippingBody", timeout=0.5, **_TIMED_OUT),
)

BREAKS = (
    _fault("http-reset-before-headers", "a reset before the answer", "ResetBeforeHeaders", **_LOST),
    _fault("http-reset-in-headers", "a reset in the headers", "ResetInHeaders", **_LOST),
    _fault("http-reset-in-body", "a reset in the body", "ResetInBody", **_LOST),
    _fault("http-reset-in-body-modern", "the same in the newer era", "ResetInBodyModern", **_LOST),
    _fault("http-ends-in-body", "an end before the end", "EndsInBody", **_LOST),
    _fault("http-broken-chunks", "chunks of no length", "BrokenChunks", **_LOST),
    _fault("http-reset-in-events", "a reset in a stream", "ResetInEvents", **_LOST),
    _fault("http-ends-in-events", "a stream ends without an answer", "EndsInEvents", **_LOST),
    _fault("http-not-http", "answers in another protocol", "NotHttp", **_LOST),
    _fault("http-huge-headers", "two megabytes of headers", "HugeHeaders", **_LOST),
    _fault(
        "http-one-of-many", "one broken call among five", "FailsOneOfMany", act="crowd", **_LOST
    ),
    _fault(
        "http-one-of-many-modern",
        "the same in the newer era",
        "FailsOneOfManyModern",
        act="crowd",
        **_LOST,
    ),
)

BODIES = (
    _fault("http-malformed-body", "an answer that is no JSON", "MalformedBody", **_BROKEN),
    _fault("http-empty-body", "an answer without a body", "EmptyBody", **_BROKEN),
    _fault("http-invalid-utf-8", "bytes that are no text", "InvalidUtf8Body", words="fine \ufffd"),
    _fault("http-lone-surrogate", "half a character", "LoneSurrogateBody", words="fine \ufffd"),
    _fault("http-huge-integer", "a number of 10,000 digits", "HugeIntegerBody", **_BROKEN),
    _fault("http-deep-json", "100,000 levels of nesting", "DeepBody", **_BROKEN),
    _fault(
        "http-many-parts",
        "5,000,000 empty lists",
        "ManyPartsBody",
        timeout=30.0,
        guard=60,
        growth_max=100,
        words="A block of this result, as JSON, which is too large for memory. 15000030 bytes kept",
    ),
    _fault(
        "http-large-body",
        "a result of 30 MB",
        "LargeBody",
        timeout=20.0,
        guard=60,
        growth_max=250,  # the server is in the same process
        words=r"fine .* \d{8,} bytes kept",
    ),
    _fault(
        "http-large-event",
        "an event of 30 MB",
        "LargeEvent",
        timeout=20.0,
        guard=60,
        growth_max=250,  # the server is in the same process
        words=r"fine .* \d{8,} bytes kept",
    ),
    _fault("http-event-junk", "junk in a stream before the answer", "EventJunk"),
    _fault("http-wrong-id", "an answer under another id", "WrongIdBody", timeout=0.5, **_TIMED_OUT),
    _fault("http-malformed-event", "an event that is no JSON", "MalformedEvent", **_BROKEN),
    _fault("http-wrong-id-in-event", "an answer under another id in its stream", "WrongIdInEvent"),
    _fault("http-answers-twice", "two answers in one stream", "AnswersTwice"),
    _fault(
        "http-event-flood", "5,000 notifications in a stream", "EventFlood", timeout=15.0, guard=40
    ),
    _fault(
        "http-countless-progress",
        "progress in numbers that no float can hold",
        "CountlessProgress",
        act="progress",
    ),
    _fault("http-unsolicited", "asks for sampling", "UnsolicitedRequest", words="fine, refused"),
    _fault("http-gzip", "a sound answer that is compressed", "SoundGzip"),
    _fault("http-broken-gzip", "an answer that claims to be compressed", "BrokenGzip", **_BROKEN),
    _fault(
        "http-bomb",
        "1 MB that inflates to 1 GB",
        "Bomb",
        timeout=20.0,
        guard=60,
        growth_max=80,
        **_BROKEN,
    ),
    _fault(
        "http-bomb-in-events",
        "a stream that inflates to 1 GB",
        "BombInEvents",
        timeout=20.0,
        guard=60,
        growth_max=80,
        **_LOST,
    ),
    _fault(
        "http-bomb-in-error",
        "an error that inflates to 1 GB",
        "BombInError",
        timeout=20.0,
        guard=60,
        growth_max=40,
        words="500",
        **_NO,
    ),
)

REQUESTS = (
    _fault(
        "http-hammered-stream",
        "a stream that ends at once and asks to come back at once",
        "HammeredStream",
        timeout=6.0,
        at_most={"GET": 9},
    ),
    _fault(
        "http-hammered-answer",
        "an answer that asks to be resumed at once, again and again",
        "HammeredAnswer",
        timeout=3.0,
        at_most={"GET": 11},
        **_TIMED_OUT,
    ),
    _fault(
        "http-polled",
        "120 answers at once that want to be fetched a moment later",
        "Polled",
        act="crowd-of-calls",
        timeout=10.0,
    ),
    _fault(
        "http-odd-pause",
        "streams that end, and ask to come back before that, with others under way",
        "OddPause",
        act="crowd",
        at_most={"GET": 9, "sessions": 1},
        **_LOST,
    ),
    _fault(
        "http-odd-pause-modern",
        "the same in the newer era",
        "OddPauseModern",
        act="crowd",
        at_most={"GET": 9},
        **_LOST,
    ),
    _fault(
        "http-redirect-to-nowhere",
        "redirects a call to what is no address, with others under way",
        "RedirectsToNowhere",
        act="crowd",
        **_LOST,
    ),
    _fault(
        "http-redirect-to-nowhere-modern",
        "the same in the newer era",
        "RedirectsToNowhereModern",
        act="crowd",
        **_LOST,
    ),
    _fault(
        "http-redirect",
        "sends a call with its token to another origin",
        "RedirectsElsewhere",
        sees="MCPExecutionFailure",
        words="[Rr]edirect",
        at_most={"elsewhere": 0},
    ),
    _fault(
        "http-redirect-loop",
        "redirects for ever",
        "RedirectsForEver",
        sees="MCPExecutionFailure",
        words="[Rr]edirect",
        at_most={"POST": 60},
    ),
)

OLD = (
    _fault("sse-silent", "never answers a call", "OldSilent", "sse", timeout=0.5, **_TIMED_OUT),
    _fault(
        "sse-malformed",
        "an event that is no JSON",
        "OldMalformed",
        "sse",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault(
        "sse-large-event",
        "an event of 5 MB, which is more than the SDK's reader takes",
        "OldLargeEvent",
        "sse",
        timeout=20.0,
        stall_max=0.25,
        growth_max=80,  # the server is in the same process
        words="fine x{100}",
    ),
    _fault("sse-dropped-stream", "a reset in a call", "OldDroppedStream", "sse", **_LOST),
    _fault(
        "sse-refused-post",
        "fails at a call, with others under way",
        "OldRefusedPost",
        "sse",
        act="crowd",
        sees="MCPConnectionFailure",
        outcome="outcome-unknown",
        words="HTTP status 500",
    ),
    _fault(
        "sse-busy-post",
        "has no time for a call, with others under way",
        "OldBusyPost",
        "sse",
        act="crowd",
        sees="MCPConnectionFailure",
        outcome="tool-error",
        words="HTTP status 429.*wait 7 s",
    ),
    _fault(
        "sse-forgotten-session",
        "forgets the session, but not its stream",
        "OldForgottenSession",
        "sse",
    ),
    _fault(
        "sse-silent-post",
        "does not even take a call, and takes no other one meanwhile",
        "OldSilentPost",
        "sse",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault(
        "sse-foreign-endpoint",
        "names an endpoint elsewhere",
        "OldForeignEndpoint",
        "sse",
        connect_timeout=2.0,
        sees="MCPConnectionFailure",
        words="another origin",
        next_works=False,
    ),
    _fault(
        "sse-without-endpoint",
        "names no endpoint",
        "OldWithoutEndpoint",
        "sse",
        connect_timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
)

HTTP_FAULTS = (*STATUSES, *SESSIONS, *SILENCES, *BREAKS, *BODIES, *REQUESTS, *OLD)
