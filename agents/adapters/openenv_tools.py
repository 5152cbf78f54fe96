"""Tools of a world in OpenEnv: actions that list and call them, and a server for MCP."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

from fastmcp import FastMCP
from fastmcp.tools import FunctionTool
from openenv.core.env_server import Action
from openenv.core.env_server import mcp_types as mcp
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from tokengym.envs.core.tools import Tool, native_line


class ToolAction(Action):
    """A reply where a world has tools: a text, or one of OpenEnv's actions for tools.

    `metadata` may hold `finish_reason`, as in `ReplyAction`.
    """

    text: str = Field("", description="the reply, or the words before the call")
    type: Literal["list_tools", "call_tool"] | None = Field(None, description="none of a text")
    tool_name: str = Field("", description="the tool that is called")
    arguments: dict[str, Any] | str = Field({}, description="an object, or its JSON")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.type is None and "text" not in self.model_fields_set:
            # OpenEnv cannot send a ValueError.
            raise PydanticCustomError("action", "an action needs a text or a type, got neither")
        return self

    @property
    def said(self) -> str:
        """The reply as a world reads it."""
        if self.type is None:
            return self.text
        return f"{self.text}\n{native_line(self.tool_name, self.arguments)}".strip()


def listed(tools: Sequence[Tool]) -> mcp.ListToolsObservation:
    """Return the answer to an action that lists tools."""
    return mcp.ListToolsObservation(
        tools=[
            mcp.Tool(name=tool.name, description=tool.description, input_schema=tool.parameters)
            for tool in tools
        ]
    )


def mcp_server(name: str, tools: Sequence[Tool], play: Callable[[str], Any]) -> FastMCP:
    """Return the server of one environment; rewards are in the state, for MCP has none.

    Args:
        name: of the server.
        tools: of the world.
        play: plays the line of a call; returns an observation.
    """

    def calling(tool: Tool) -> Callable[..., str]:
        return lambda **arguments: play(native_line(tool.name, arguments)).text

    server: FastMCP = FastMCP(name)
    for tool in tools:
        server.add_tool(FunctionTool(**tool.function, fn=calling(tool)))
    return server
