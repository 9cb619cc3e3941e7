# SPDX-License-Identifier: Apache-2.0
"""A conversation engine: canisters, models that continue them, and ensembles of tools.

Each name is loaded when it is first used, so that `import converser` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .arguments import Strictness as Strictness
    from .canisters import (
        AssistantCanister as AssistantCanister,
        Canister as Canister,
        DocumentCanister as DocumentCanister,
        InvocationCanister as InvocationCanister,
        ResultCanister as ResultCanister,
        SupervisorCanister as SupervisorCanister,
        UnknownCanister as UnknownCanister,
        Usage as Usage,
        UserCanister as UserCanister,
        assistant as assistant,
        document as document,
        supervisor as supervisor,
        user as user,
    )
    from .codec import (
        decode_canister as decode_canister,
        decode_content as decode_content,
        dump_canister as dump_canister,
        encode_canister as encode_canister,
        encode_content as encode_content,
        load_canister as load_canister,
    )
    from .configuration import (
        Configuration as Configuration,
        MCPServer as MCPServer,
        load_configuration as load_configuration,
    )
    from .conflicts import gather_invokers as gather_invokers
    from .contents import (
        AudioContent as AudioContent,
        BlobContent as BlobContent,
        Content as Content,
        ImageContent as ImageContent,
        LinkContent as LinkContent,
        TextualContent as TextualContent,
        UnknownContent as UnknownContent,
    )
    from .ensembles import (
        Ensemble as Ensemble,
        EnsembleConfiguration as EnsembleConfiguration,
    )
    from .events import (
        Announce as Announce,
        Event as Event,
        InvocationCompleted as InvocationCompleted,
        InvocationProgressed as InvocationProgressed,
        InvocationRequested as InvocationRequested,
        InvocationStarted as InvocationStarted,
        MessageCompleted as MessageCompleted,
        MessageFailed as MessageFailed,
        MessageStarted as MessageStarted,
        ReplyCompleted as ReplyCompleted,
        ServerStateChanged as ServerStateChanged,
        TextDelta as TextDelta,
        ThoughtDelta as ThoughtDelta,
        ToolsChanged as ToolsChanged,
    )
    from .exceptions import (
        AnswerInvalidity as AnswerInvalidity,
        ArgumentsInvalidity as ArgumentsInvalidity,
        CanisterInvalidity as CanisterInvalidity,
        ConfigurationFailure as ConfigurationFailure,
        ConversationAbsence as ConversationAbsence,
        ConverserFailure as ConverserFailure,
        FunctionInvalidity as FunctionInvalidity,
        InvokerAbsence as InvokerAbsence,
        MCPConnectionFailure as MCPConnectionFailure,
        MCPExecutionFailure as MCPExecutionFailure,
        MCPFailure as MCPFailure,
        MCPProtocolFailure as MCPProtocolFailure,
        MCPSchemaFailure as MCPSchemaFailure,
        MCPTimeoutFailure as MCPTimeoutFailure,
        ModelFailure as ModelFailure,
        NameConflict as NameConflict,
        PersistenceFailure as PersistenceFailure,
        SchemaInvalidity as SchemaInvalidity,
        ToolExecutionFailure as ToolExecutionFailure,
    )
    from .excesses import Excess as Excess, access_excess as access_excess
    from .functions import (
        create_local_ensemble as create_local_ensemble,
        create_tool_from_function as create_tool_from_function,
        tool as tool,
    )
    from .invokers import (
        Annotations as Annotations,
        Context as Context,
        InvocationResult as InvocationResult,
        Invoker as Invoker,
        Tool as Tool,
    )
    from .mcp.clients import (
        HttpMCPClient as HttpMCPClient,
        InProcessMCPClient as InProcessMCPClient,
        MCPClient as MCPClient,
        SseMCPClient as SseMCPClient,
        StdioMCPClient as StdioMCPClient,
    )
    from .mcp.configured import create_mcp_ensemble as create_mcp_ensemble
    from .mcp.discovery import (
        create_invoker_from_mcp_tool as create_invoker_from_mcp_tool,
        discover_mcp_tools as discover_mcp_tools,
    )
    from .mcp.handlers import Elicitation as Elicitation, ElicitationAnswer as ElicitationAnswer
    from .mcp.states import ConnectionState as ConnectionState
    from .models import Model as Model, access_model as access_model
    from .naming import Naming as Naming
    from .outcomes import Outcome as Outcome
    from .persistence.conversation import (
        ConversationSurvey as ConversationSurvey,
        StoredConversation as StoredConversation,
    )
    from .persistence.exports.formats import (
        ExportFormat as ExportFormat,
        export_conversation as export_conversation,
    )
    from .persistence.metadata import ConversationMetadata as ConversationMetadata
    from .persistence.searching import ConversationFinding as ConversationFinding
    from .persistence.store import ConversationStore as ConversationStore
    from .policies import (
        ApprovalRequest as ApprovalRequest,
        Approver as Approver,
        Decision as Decision,
        Policy as Policy,
        allow as allow,
        ask as ask,
        deny as deny,
    )
    from .replies import Limits as Limits, Reply as Reply, StopReason as StopReason
    from .rosters.catalogue import (
        Catalogue as Catalogue,
        CatalogueEntry as CatalogueEntry,
        Drift as Drift,
        find_drift as find_drift,
        read_catalogue as read_catalogue,
        write_catalogue as write_catalogue,
    )
    from .rosters.opening import open_roster as open_roster
    from .rosters.roster import Roster as Roster
    from .rosters.surveys import (
        Revision as Revision,
        ServerSurvey as ServerSurvey,
        ToolSurvey as ToolSurvey,
    )
    from .sections import Briefing as Briefing, Section as Section
    from .selection import Selection as Selection
    from .signatures import (
        OMITTED as OMITTED,
        create_arguments_class as create_arguments_class,
        dump_arguments as dump_arguments,
    )
    from .stubs import write_stub_module as write_stub_module
    from .turns import (
        Capabilities as Capabilities,
        Controls as Controls,
        Provider as Provider,
        Transcript as Transcript,
    )

__version__ = "0.1.0.dev0"

_ROOMS = {
    "arguments": "Strictness",
    "canisters": (
        "AssistantCanister Canister DocumentCanister InvocationCanister ResultCanister "
        "SupervisorCanister UnknownCanister Usage UserCanister assistant document supervisor "
        "user"
    ),
    "rosters.catalogue": "Catalogue CatalogueEntry Drift find_drift read_catalogue write_catalogue",
    "codec": (
        "decode_canister decode_content dump_canister encode_canister encode_content load_canister"
    ),
    "configuration": "Configuration MCPServer load_configuration",
    "contents": (
        "AudioContent BlobContent Content ImageContent LinkContent TextualContent UnknownContent"
    ),
    "conflicts": "gather_invokers",
    "ensembles": "Ensemble EnsembleConfiguration",
    "events": (
        "Announce Event InvocationCompleted InvocationProgressed InvocationRequested "
        "InvocationStarted MessageCompleted MessageFailed MessageStarted ReplyCompleted "
        "ServerStateChanged TextDelta ThoughtDelta ToolsChanged"
    ),
    "exceptions": (
        "AnswerInvalidity ArgumentsInvalidity CanisterInvalidity ConfigurationFailure "
        "ConversationAbsence ConverserFailure "
        "FunctionInvalidity InvokerAbsence MCPConnectionFailure MCPExecutionFailure "
        "MCPFailure MCPProtocolFailure MCPSchemaFailure MCPTimeoutFailure ModelFailure "
        "NameConflict PersistenceFailure SchemaInvalidity ToolExecutionFailure"
    ),
    "excesses": "Excess access_excess",
    "functions": "create_local_ensemble create_tool_from_function tool",
    "invokers": "Annotations Context InvocationResult Invoker Tool",
    "mcp.clients": "HttpMCPClient InProcessMCPClient MCPClient SseMCPClient StdioMCPClient",
    "mcp.configured": "create_mcp_ensemble",
    "mcp.discovery": "create_invoker_from_mcp_tool discover_mcp_tools",
    "mcp.handlers": "Elicitation ElicitationAnswer",
    "mcp.states": "ConnectionState",
    "models": "Model access_model",
    "naming": "Naming",
    "rosters.opening": "open_roster",
    "outcomes": "Outcome",
    "persistence.conversation": "ConversationSurvey StoredConversation",
    "persistence.exports.formats": "ExportFormat export_conversation",
    "persistence.metadata": "ConversationMetadata",
    "persistence.searching": "ConversationFinding",
    "persistence.store": "ConversationStore",
    "policies": "ApprovalRequest Approver Decision Policy allow ask deny",
    "replies": "Limits Reply StopReason",
    "rosters.roster": "Roster",
    "sections": "Briefing Section",
    "selection": "Selection",
    "signatures": "OMITTED create_arguments_class dump_arguments",
    "stubs": "write_stub_module",
    "rosters.surveys": "Revision ServerSurvey ToolSurvey",
    "turns": "Capabilities Controls Provider Transcript",
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
