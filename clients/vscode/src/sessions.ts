// Conversations that were kept: pick one and go on with it, or delete it.

import type { SessionSummary } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import type { Chats } from "./chats";
import { escapeLine } from "./common/text";
import { messageOf, type Sidecar } from "./sidecar";

/** Own choice: as many as a person looks through. */
const LIMIT = 200;

const DELETE: vscode.QuickInputButton = { iconPath: new vscode.ThemeIcon("trash"), tooltip: "Delete this conversation for good" };

interface SessionItem extends vscode.QuickPickItem {
  sessionId: string;
}

/** Lets the person pick a session, the last touched first. True when one is shown then. */
export async function pickSession(sidecar: Sidecar, chats: Chats): Promise<boolean> {
  const pick = vscode.window.createQuickPick<SessionItem>();
  pick.title = "Conversations";
  pick.placeholder = "Go on with";
  pick.matchOnDescription = true;
  pick.busy = true;
  pick.show();
  const fill = async (): Promise<void> => {
    const { sessions } = await sidecar.request("session/list", { limit: LIMIT });
    pick.items = sessions.map((session) => itemOf(session, chats.current.sessionId));
    pick.placeholder = sessions.length > 0 ? "Go on with" : "No conversation is kept yet; ask something to begin one";
    pick.busy = false;
  };
  const picked = await new Promise<SessionItem | undefined>((resolve) => {
    pick.onDidAccept(() => resolve(pick.selectedItems[0]));
    pick.onDidHide(() => resolve(undefined));
    pick.onDidTriggerItemButton(({ item }) => void remove(item, sidecar, chats).then(fill).catch(told));
    fill().catch((error: unknown) => {
      told(error);
      resolve(undefined);
    });
  });
  pick.dispose();
  if (!picked) {
    return false;
  }
  await chats.resume(picked.sessionId);
  return true;
}

async function remove(item: SessionItem, sidecar: Sidecar, chats: Chats): Promise<void> {
  if (chats.current.sessionId === item.sessionId) {
    chats.begin();
  }
  await sidecar.request("session/delete", { sessionId: item.sessionId });
}

function itemOf(session: SessionSummary, current: string | undefined): SessionItem {
  const count = session.messageCount === 1 ? "1 message" : `${session.messageCount} messages`;
  return {
    sessionId: session.sessionId,
    label: escapeLine(session.title ?? "Without a title"),
    description: `${new Date(session.updatedMs).toLocaleString()}, ${count}${session.sessionId === current ? " (shown)" : ""}`,
    buttons: [DELETE],
  };
}

function told(error: unknown): void {
  void vscode.window.showErrorMessage(`Agent Sidecar: ${messageOf(error)}`);
}
