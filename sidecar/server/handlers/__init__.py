"""One function a method: decoded params in, value out. HANDLERS and LISTENERS are the whole list."""

from collections.abc import Mapping

from sidecar.server.handlers import agent, audit, mcp, models, permissions, sessions, tools, workspace
from sidecar.server.rpc import Handler, Listener

HANDLERS: Mapping[str, Handler] = {
    "agent/submit": agent.submit,
    "agent/cancel": agent.cancel,
    "agent/steer": agent.steer,
    "session/create": sessions.create,
    "session/list": sessions.list_sessions,
    "session/get": sessions.get,
    "session/events": sessions.events,
    "session/fork": sessions.fork,
    "session/compact": sessions.compact,
    "session/export": sessions.export,
    "session/delete": sessions.delete,
    "tools/list": tools.list_tools,
    "tools/call": tools.call,
    "tools/register": tools.register,
    "tools/unregister": tools.unregister,
    "permissions/get": permissions.get,
    "permissions/set": permissions.set_permissions,
    "permissions/check": permissions.check,
    "audit/list": audit.list_entries,
    "mcp/list": mcp.list_servers,
    "mcp/connect": mcp.connect,
    "mcp/disconnect": mcp.disconnect,
    "mcp/restart": mcp.restart,
    "mcp/resources": mcp.resources,
    "mcp/resourceTemplates": mcp.resource_templates,
    "mcp/readResource": mcp.read_resource,
    "mcp/watchResources": mcp.watch_resources,
    "mcp/prompts": mcp.prompts,
    "mcp/getPrompt": mcp.get_prompt,
    "mcp/complete": mcp.complete,
    "mcp/setLogLevel": mcp.set_log_level,
    "models/list": models.list_models,
}

LISTENERS: Mapping[str, Listener] = {
    "$/progress": tools.progress,
    "model/delta": models.delta,
    "initialized": workspace.initialized,
    "workspace/didChangeWorkspaceFolders": workspace.folders_changed,
    "workspace/didChangeWatchedFiles": workspace.files_changed,
}
