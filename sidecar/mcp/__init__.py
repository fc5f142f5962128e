"""The only place that knows MCP's JSON: transports, connection, client, and the manager of many servers."""
