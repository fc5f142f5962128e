"""What tools are, which there are, and the one way a tool runs: `ToolRegistry.invoke`."""
