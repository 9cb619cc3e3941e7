# SPDX-License-Identifier: Apache-2.0
"""The faults of servers over stdio."""

from __future__ import annotations

from tests.faults.fault import Fault

_TIMED_OUT = {"sees": "MCPTimeoutFailure", "outcome": "timed-out", "words": "did not answer"}
_BROKEN = {"sees": "MCPProtocolFailure", "outcome": "outcome-unknown", "words": "Check whether"}
_LOST = {
    "sees": "MCPConnectionFailure",
    "outcome": "outcome-unknown",
    "words": "outcome is unknown",
}
_LARGE = {"arguments": {"blob": "x" * 2_000_000}}


def _fault(name: str, story: str, server: str, **more: object) -> Fault:
    return Fault(name=name, story=story, server=server, **more)  # type: ignore[arg-type]


ANSWERS = (
    _fault("silent", "never answers a call", "Silent", timeout=0.5, **_TIMED_OUT),
    _fault("malformed-line", "an answer that is no JSON", "MalformedLine", **_BROKEN),
    _fault(
        "malformed-line-without-id",
        "an answer that is no JSON, and does not say to which call",
        "MalformedLineWithoutId",
        timeout=0.5,
        **_TIMED_OUT,
    ),
    _fault("wrong-id", "an answer under an id of no call", "WrongId", timeout=0.5, **_TIMED_OUT),
    _fault("duplicate-id", "two answers to one call", "DuplicateId"),
    _fault("guessed-ids", "answers to calls that were not made yet", "GuessedIds"),
    _fault("late-answer", "an answer after the deadline", "LateAnswer", timeout=0.5, **_TIMED_OUT),
    _fault("textual-id", "an answer whose id is text", "TextualId"),
    _fault("fractional-id", "an answer whose id is a fraction of nothing", "FractionalId"),
    _fault("lone-surrogate", "half a character", "LoneSurrogate", words="fine \ufffd here"),
    _fault("invalid-utf-8", "bytes that are no text", "InvalidUtf8", words="fine \ufffd"),
    _fault("huge-integer", "a number of 10,000 digits", "HugeInteger", **_BROKEN),
    _fault("deep-json", "100,000 levels of nesting", "DeepJson", **_BROKEN),
    _fault("rather-deep-json", "400 levels of nesting", "RatherDeepJson", **_BROKEN),
    _fault(
        "many-parts",
        "5,000,000 empty lists",
        "ManyParts",
        timeout=30.0,
        guard=60,
        growth_max=60,
        stall_max=0.25,
        words="'structuredContent', which is too large for memory",
    ),
    _fault(
        "many-blocks",
        "100,000 content blocks",
        "ManyBlocks",
        timeout=15.0,
        guard=60,
        growth_max=40,
    ),
    _fault(
        "large-result",
        "a result of 30 MB",
        "LargeResult",
        timeout=30.0,
        guard=60,
        growth_max=60,
        stall_max=0.25,
        words=r"fine .* \d{8,} bytes kept",
    ),
    _fault("half-line", "half an answer, then silence", "HalfLine", timeout=0.5, **_TIMED_OUT),
    _fault("junk", "junk on stdout before and between messages", "Junk"),
    _fault("junk-on-the-same-line", "junk before each message, on its line", "JunkOnTheSameLine"),
    _fault("byte-order-mark", "a byte order mark before the first message", "ByteOrderMark"),
    _fault("windows-lines", "empty lines, and lines that end as on Windows", "WindowsLines"),
    _fault("batch", "an answer in a batch", "Batch"),
    _fault("odd-error", "an error that is none", "OddError", **_BROKEN),
    _fault("neither", "neither a result nor an error", "NeitherResultNorError", **_BROKEN),
    _fault(
        "endless-junk",
        "junk on stdout without end",
        "EndlessJunk",
        timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault("stderr-flood", "20 MB on stderr", "StderrFlood", timeout=15.0, growth_max=10),
    _fault(
        "stderr-without-lines",
        "20 MB on stderr in one line",
        "StderrWithoutLines",
        timeout=15.0,
        growth_max=10,
    ),
    _fault(
        "never-reads",
        "never reads a call of 2 MB",
        "NeverReads",
        timeout=0.5,
        next_works=False,
        **_LARGE,
        **_TIMED_OUT,
    ),
    _fault(
        "cancelled",
        "the caller gives up; the server is told",
        "Cancelled",
        act="cancel",
        sees="CancelledError",
        words="",
        at_least={"cancelled": 1},
    ),
    _fault(
        "timed-out",
        "is told that the time of a call is up",
        "Cancelled",
        timeout=0.5,
        at_least={"cancelled": 1},
        **_TIMED_OUT,
    ),
)

PROCESSES = (
    _fault(
        "dies",
        "dies in the middle of a call, with a reason",
        "Dies",
        sees="MCPConnectionFailure",
        outcome="outcome-unknown",
        words="exit code 3.*out of cheese",
    ),
    _fault("dies-once", "dies in a call that only reads", "DiesOnce", at_most={"called": 2}),
    _fault(
        "hangs-when-back",
        "dies in a call that only reads, and hangs when it is started again",
        "HangsWhenBack",
        timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault(
        "stumbles-when-back",
        "dies in a call that only reads, and cannot be started again at first",
        "StumblesWhenBack",
        at_most={"called": 2},
    ),
    _fault(
        "dies-again-and-again",
        "dies whenever it has listed its tools, and in a call",
        "DiesAgainAndAgain",
        sees="MCPConnectionFailure",
        words="",
        next_works=False,
        at_most={"start": 12},
    ),
    _fault("closes-stdout", "closes its output and lives on", "ClosesStdout", **_LOST),
    _fault("closes-stdin", "closes its input and lives on", "ClosesStdin"),
    _fault(
        "exits-at-start",
        "ends at once, with a reason",
        "ExitsAtStart",
        sees="MCPConnectionFailure",
        words="config.yaml: no such file",
        next_works=False,
    ),
    _fault("child-holds-the-pipe", "ends; its child holds the pipe", "ChildHoldsThePipe", **_LOST),
    _fault(
        "keeper-is-killed",
        "loses its keeper, and ends with it; its child holds the pipe",
        "KeeperIsKilled",
        timeout=1.5,
        **_LOST,
    ),
    _fault("keeper-is-stopped", "has its keeper stopped", "KeeperIsStopped"),
    _fault("ignores-the-end", "ignores SIGTERM and the end of its input", "IgnoresTheEnd"),
    _fault("setsid-grandchildren", "leaves daemons behind", "SetsidGrandchildren"),
    _fault(
        "host-killed",
        "our own process is killed by SIGKILL while a server with daemons, deaf to all, runs",
        "Nasty",
        act="die",
        words="",
        next_works=False,
    ),
    _fault(
        "silent-from-the-start",
        "never answers anything",
        "SilentFromTheStart",
        connect_timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault(
        "deaf-from-the-start",
        "never answers anything, and does not end when it is told to",
        "DeafFromTheStart",
        connect_timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault("slow-start", "takes a second and a half to start", "SlowStart"),
    _fault(
        "ignores-unknown-methods",
        "an old server that ignores what it does not know",
        "IgnoresUnknownMethods",
        act="reconnect",
        connect_timeout=6.0,
        guard=45.0,
        at_least={"ignored": 1},
        at_most={"ignored": 2},
    ),
    _fault(
        "dies-of-unknown-methods",
        "an old server that dies of what it does not know",
        "DiesOfUnknownMethods",
        act="reconnect",
        at_least={"start": 3},
        at_most={"start": 3},
    ),
    _fault(
        "unsupported-version",
        "speaks a version that nobody knows",
        "UnsupportedVersion",
        sees="MCPProtocolFailure",
        words="1999-01-01|version",
        next_works=False,
    ),
    _fault(
        "malformed-handshake",
        "shakes hands wrongly",
        "MalformedHandshake",
        sees="MCPProtocolFailure",
        words="protocol",
        next_works=False,
    ),
)

LISTINGS = (
    _fault("malformed-tool", "bad tools among good ones", "MalformedTool", words="fine.*'spoiled'"),
    _fault("endless-pages", "pages without end", "EndlessPages", words="fine.*no end", guard=40),
    _fault(
        "dripping-pages",
        "pages without end, slowly",
        "DrippingPages",
        connect_timeout=1.5,
        words="fine.*broke off.*connect_timeout",
    ),
    _fault("standing-cursor", "one page again and again", "StandingCursor", words="fine.*cursor"),
    _fault("duplicate-tools", "tools listed twice", "DuplicateTools", words="fine.*twice"),
    _fault(
        "listing-of-no-list",
        "a listing that is none",
        "ListingOfNoList",
        sees="MCPProtocolFailure",
        words="protocol",
        next_works=False,
    ),
    _fault(
        "silent-listing",
        "never lists its tools",
        "SilentListing",
        connect_timeout=1.0,
        next_works=False,
        **_TIMED_OUT,
    ),
    _fault(
        "change-flood",
        "tells 5,000 times that its tools changed",
        "ChangeFlood",
        act="linger",
        at_most={"listed": 6},
    ),
    _fault(
        "wordy-tools",
        "1.5 million characters that must not be shown in descriptions, titles and names",
        "WordyServer",
        stall_max=0.4,
        growth_max=60,
        words="left out: its name has more than 1,000 characters",
    ),
    _fault(
        "quick-changes",
        "tells of nine changes within a tenth of a second",
        "QuickChanges",
        act="linger",
        at_most={"listed": 4},
        at_least={"listed": 2},
    ),
)

RESULTS = (
    _fault("unknown-block", "content of a kind that nobody knows", "UnknownBlock"),
    _fault("missing-content", "a result without content", "MissingContent"),
    _fault("content-of-no-list", "a block where a list of them should be", "ContentOfNoList"),
    _fault("null-content", "null where a list of blocks should be", "NullContent"),
    _fault("missing-result-type", "a result of 2026 without its type", "MissingResultType"),
    _fault("unknown-result-type", "a result of an unknown type", "UnknownResultType", **_BROKEN),
    _fault("schema-violation", "breaks its own schema", "SchemaViolation", words="fine.*schema"),
    _fault(
        "evil-input-pattern",
        "a pattern for arguments that takes for ever",
        "EvilInputPattern",
        arguments={"text": "a" * 60 + "!"},
        sees="ArgumentsInvalidity",
        outcome="invalid",
        words="",
    ),
    _fault("evil-output-pattern", "a pattern for results that takes for ever", "EvilOutputPattern"),
    _fault("recursive-schema", "a schema that refers to itself", "RecursiveSchema"),
    _fault("circular-schema", "a schema that is nothing but a circle", "CircularSchema"),
    _fault("remote-reference", "a schema that lives elsewhere", "RemoteReference"),
)

FLOODS = (
    _fault(
        "notification-flood", "20,000 notifications", "NotificationFlood", timeout=15.0, guard=40
    ),
    _fault(
        "progress-flood",
        "20,000 signs of progress",
        "ProgressFlood",
        timeout=15.0,
        guard=40,
        act="progress",
    ),
    _fault(
        "countless-progress",
        "progress in numbers that no float can hold",
        "CountlessProgress",
        act="progress",
        at_most={"started": 1},
    ),
    _fault(
        "wordy-progress",
        "progress with 1.5 million characters that must not be shown",
        "WordyProgress",
        act="progress",
        stall_max=0.25,
        growth_max=40,
    ),
    _fault("request-flood", "3,000 requests at once", "RequestFlood", timeout=15.0),
    _fault("odd-requests", "requests under ids that are none", "OddRequests"),
    _fault("unsolicited-sampling", "asks for sampling", "Unsolicited", words="fine, refused"),
    _fault(
        "unsolicited-elicitation", "asks a person", "UnsolicitedElicitation", words="fine, refused"
    ),
    _fault("unsolicited-nonsense", "asks nonsense", "UnsolicitedNonsense", words="fine, refused"),
)

STDIO_FAULTS = (*ANSWERS, *PROCESSES, *LISTINGS, *RESULTS, *FLOODS)
