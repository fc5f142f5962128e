// The tree of MCP servers and tools.

import type { ServerInfo, ServerStatus, ToolInfo } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { escapeHidden, escapeLine } from "./common/text";
import { messageOf } from "./errors";
import type { Sidecar } from "./sidecar";

export const TOOLS_VIEW = "agentSidecar.tools";

/** Own choice: many changes come at once while servers start. */
const REFRESH_AFTER_MS = 150;
const PAGE = 200;

export type Node = ServerNode | GroupNode | ToolNode;

export interface ServerNode {
  kind: "server";
  server: ServerInfo;
  tools: ToolNode[];
}

interface GroupNode {
  kind: "group";
  label: string;
  tools: ToolNode[];
}

interface ToolNode {
  kind: "tool";
  tool: ToolInfo;
}

const ICONS: Record<ServerStatus, vscode.ThemeIcon> = {
  starting: new vscode.ThemeIcon("loading~spin"),
  ready: new vscode.ThemeIcon("server-process", new vscode.ThemeColor("testing.iconPassed")),
  failed: new vscode.ThemeIcon("error", new vscode.ThemeColor("testing.iconFailed")),
  stopped: new vscode.ThemeIcon("circle-slash"),
  needsAuth: new vscode.ThemeIcon("key", new vscode.ThemeColor("notificationsWarningIcon.foreground")),
};

const STATUS_WORDS: Record<ServerStatus, string> = {
  starting: "starting",
  ready: "ready",
  failed: "failed",
  stopped: "stopped",
  needsAuth: "wants you to sign in",
};

const GROUPS: Record<ToolInfo["source"]["type"], string> = {
  builtin: "Built in",
  python: "Your own",
  host: "From the editor",
  mcp: "From servers",
};

export class ToolTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly log: vscode.LogOutputChannel,
  ) {
    sidecar.onStateChanged(() => this.refreshSoon());
  }

  refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire();
    }, REFRESH_AFTER_MS);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) {
      return node.kind === "tool" ? [] : node.tools;
    }
    if (this.sidecar.state.kind !== "ready") {
      return [];
    }
    try {
      const [{ servers }, tools] = await Promise.all([this.sidecar.request("mcp/list", {}), this.tools()]);
      return grouped(servers, tools);
    } catch (error) {
      this.log.warn(`the tools cannot be listed: ${messageOf(error)}`);
      return [];
    }
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "server":
        return serverItem(node);
      case "group":
        return new vscode.TreeItem(node.label, vscode.TreeItemCollapsibleState.Collapsed);
      case "tool":
        return toolItem(node.tool);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.changed.dispose();
  }

  private async tools(): Promise<ToolInfo[]> {
    const tools: ToolInfo[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.sidecar.request("tools/list", { cursor, limit: PAGE });
      tools.push(...page.tools);
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    return tools;
  }
}

function grouped(servers: ServerInfo[], tools: ToolInfo[]): Node[] {
  const nodes = (of: (tool: ToolInfo) => boolean): ToolNode[] => tools.filter(of).map((tool) => ({ kind: "tool", tool }));
  const groups = (["builtin", "python", "host"] as const)
    .map((type): GroupNode => ({ kind: "group", label: GROUPS[type], tools: nodes(({ source }) => source.type === type) }))
    .filter((group) => group.tools.length > 0);
  return [
    ...servers.map((server): ServerNode => ({ kind: "server", server, tools: nodes(({ source }) => source.server === server.name) })),
    ...groups,
  ];
}

function serverItem({ server, tools }: ServerNode): vscode.TreeItem {
  const open = tools.length > 0 ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.None;
  const item = new vscode.TreeItem(escapeLine(server.name), open);
  const count = tools.length === 1 ? "1 tool" : `${tools.length} tools`;
  item.description = server.status === "ready" ? count : STATUS_WORDS[server.status];
  item.iconPath = ICONS[server.status];
  item.contextValue = `server.${server.status}`;
  item.tooltip = server.error ? escapeHidden(server.error.message) : `${escapeLine(server.name)}: ${STATUS_WORDS[server.status]}, ${count}`;
  item.accessibilityInformation = { label: `MCP server ${server.name}, ${STATUS_WORDS[server.status]}, ${count}` };
  return item;
}

function toolItem(tool: ToolInfo): vscode.TreeItem {
  const prefix = tool.source.server ? `${tool.source.server}__` : "";
  const name = prefix !== "" && tool.name.startsWith(prefix) ? tool.name.slice(prefix.length) : tool.name;
  const item = new vscode.TreeItem(escapeLine(name));
  const needs = tool.requiredPermissions.join(", ");
  item.description = escapeLine(needs);
  item.iconPath = new vscode.ThemeIcon("tools");
  item.contextValue = "tool";
  item.tooltip = escapeHidden(`${tool.name}\n\n${tool.description}${needs ? `\n\nNeeds: ${needs}` : ""}`);
  return item;
}
