"""Agent Sidecar: tools, permissions, MCP servers and the model loop, behind LSP framing or in process."""

__version__ = "0.1.0"
