# SPDX-License-Identifier: Apache-2.0
"""A conversation engine: canisters, models that continue them, and ensembles of tools.

Each name is loaded when it is first used, so that `import converser` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import Strictness as Strictness
    from .canisters import AssistantCanister as AssistantCanister
    from .canisters import Canister as Canister
    from .canisters import DocumentCanister as DocumentCanister
    from .canisters import InvocationCanister as InvocationCanister
    from .canisters import ResultCanister as ResultCanister
    from .canisters import SupervisorCanister as SupervisorCanister
    from .canisters import UnknownCanister as UnknownCanister
    from .canisters import Usage as Usage
    from .canisters import UserCanister as UserCanister
    from .canisters import assistant as assistant
    from .canisters import document as document
    from .canisters import supervisor as supervisor
    from .canisters import user as user
    from .codec import decode_canister as decode_canister
    from .codec import decode_content as decode_content
    from .codec import dump_canister as dump_canister
    from .codec import encode_canister as encode_canister
    from .codec import encode_content as encode_content
    from .codec import load_canister as load_canister
    from .configuration import Configuration as Configuration
    from .configuration import MCPServer as MCPServer
    from .configuration import load_configuration as load_configuration
    from .contents import AudioContent as AudioContent
    from .contents import BlobContent as BlobContent
    from .contents import Content as Content
    from .contents import ImageContent as ImageContent
    from .contents import LinkContent as LinkContent
    from .contents import TextualContent as TextualContent
    from .contents import UnknownContent as UnknownContent
    from .ensembles import Ensemble as Ensemble
    from .ensembles import EnsembleConfiguration as EnsembleConfiguration
    from .ensembles import gather_invokers as gather_invokers
    from .events import Event as Event
    from .events import InvocationCompleted as InvocationCompleted
    from .events import InvocationProgressed as InvocationProgressed
    from .events import InvocationRequested as InvocationRequested
    from .events import InvocationStarted as InvocationStarted
    from .events import MessageCompleted as MessageCompleted
    from .events import MessageFailed as MessageFailed
    from .events import MessageStarted as MessageStarted
    from .events import ReplyCompleted as ReplyCompleted
    from .events import ServerStateChanged as ServerStateChanged
    from .events import TextDelta as TextDelta
    from .events import ThoughtDelta as ThoughtDelta
    from .exceptions import ArgumentsInvalidity as ArgumentsInvalidity
    from .exceptions import CanisterInvalidity as CanisterInvalidity
    from .exceptions import ConfigurationFailure as ConfigurationFailure
    from .exceptions import ConverserFailure as ConverserFailure
    from .exceptions import FunctionInvalidity as FunctionInvalidity
    from .exceptions import InvokerAbsence as InvokerAbsence
    from .exceptions import MCPConnectionFailure as MCPConnectionFailure
    from .exceptions import MCPExecutionFailure as MCPExecutionFailure
    from .exceptions import MCPFailure as MCPFailure
    from .exceptions import MCPProtocolFailure as MCPProtocolFailure
    from .exceptions import MCPSchemaFailure as MCPSchemaFailure
    from .exceptions import MCPTimeoutFailure as MCPTimeoutFailure
    from .exceptions import ModelFailure as ModelFailure
    from .exceptions import NameConflict as NameConflict
    from .exceptions import SchemaInvalidity as SchemaInvalidity
    from .exceptions import ToolExecutionFailure as ToolExecutionFailure
    from .functions import create_local_ensemble as create_local_ensemble
    from .functions import tool as tool
    from .invokers import Annotations as Annotations
    from .invokers import Context as Context
    from .invokers import InvocationResult as InvocationResult
    from .invokers import Invoker as Invoker
    from .invokers import Tool as Tool
    from .mcp.clients import HttpMCPClient as HttpMCPClient
    from .mcp.clients import InProcessMCPClient as InProcessMCPClient
    from .mcp.clients import MCPClient as MCPClient
    from .mcp.clients import SseMCPClient as SseMCPClient
    from .mcp.clients import StdioMCPClient as StdioMCPClient
    from .mcp.configured import create_mcp_ensemble as create_mcp_ensemble
    from .mcp.discovery import create_invoker_from_mcp_tool as create_invoker_from_mcp_tool
    from .mcp.discovery import discover_mcp_tools as discover_mcp_tools
    from .mcp.handlers import Elicitation as Elicitation
    from .mcp.handlers import ElicitationAnswer as ElicitationAnswer
    from .mcp.states import ConnectionState as ConnectionState
    from .models import Model as Model
    from .naming import Naming as Naming
    from .outcomes import Outcome as Outcome
    from .policies import ApprovalRequest as ApprovalRequest
    from .policies import Decision as Decision
    from .policies import Policy as Policy
    from .policies import allow as allow
    from .policies import ask as ask
    from .policies import deny as deny
    from .replies import Limits as Limits
    from .replies import Reply as Reply
    from .replies import StopReason as StopReason
    from .selection import Selection as Selection
    from .signatures import create_arguments_class as create_arguments_class
    from .signatures import dump_arguments as dump_arguments
    from .stubs import write_stub_module as write_stub_module
    from .turns import Controls as Controls

__version__ = "0.1.0.dev0"

_ROOMS = {
    "arguments": "Strictness",
    "canisters": (
        "AssistantCanister Canister DocumentCanister InvocationCanister ResultCanister "
        "SupervisorCanister UnknownCanister Usage UserCanister assistant document supervisor "
        "user"
    ),
    "codec": (
        "decode_canister decode_content dump_canister encode_canister encode_content load_canister"
    ),
    "configuration": "Configuration MCPServer load_configuration",
    "contents": (
        "AudioContent BlobContent Content ImageContent LinkContent TextualContent UnknownContent"
    ),
    "ensembles": "Ensemble EnsembleConfiguration gather_invokers",
    "events": (
        "Event InvocationCompleted InvocationProgressed InvocationRequested InvocationStarted "
        "MessageCompleted MessageFailed MessageStarted ReplyCompleted ServerStateChanged "
        "TextDelta ThoughtDelta"
    ),
    "exceptions": (
        "ArgumentsInvalidity CanisterInvalidity ConfigurationFailure ConverserFailure "
        "FunctionInvalidity InvokerAbsence MCPConnectionFailure MCPExecutionFailure "
        "MCPFailure MCPProtocolFailure MCPSchemaFailure MCPTimeoutFailure ModelFailure "
        "NameConflict SchemaInvalidity ToolExecutionFailure"
    ),
    "functions": "create_local_ensemble tool",
    "invokers": "Annotations Context InvocationResult Invoker Tool",
    "mcp.clients": "HttpMCPClient InProcessMCPClient MCPClient SseMCPClient StdioMCPClient",
    "mcp.configured": "create_mcp_ensemble",
    "mcp.discovery": "create_invoker_from_mcp_tool discover_mcp_tools",
    "mcp.handlers": "Elicitation ElicitationAnswer",
    "mcp.states": "ConnectionState",
    "models": "Model",
    "naming": "Naming",
    "outcomes": "Outcome",
    "policies": "ApprovalRequest Decision Policy allow ask deny",
    "replies": "Limits Reply StopReason",
    "selection": "Selection",
    "signatures": "create_arguments_class dump_arguments",
    "stubs": "write_stub_module",
    "turns": "Controls",
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if (room := _HOMES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{room}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
