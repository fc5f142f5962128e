"""OAuth 2.1 for MCP servers that are reached over HTTP: from a 401 to a token, and from an old token to a new one.

Nothing here is imported before a server with a `url` is used, except `options`.
"""
