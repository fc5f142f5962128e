// Conversations that were kept: pick one and go on with it, or delete it.

import type { SessionSummary } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import type { Chat } from "./chat";
import type { Chats } from "./chats";
import { escapeLine } from "./common/text";
import { messageOf } from "./errors";
import type { Sidecar } from "./sidecar";

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
  pick.matchOnDetail = true;
  pick.busy = true;
  pick.show();
  const fill = async (): Promise<void> => {
    const { sessions } = await sidecar.request("session/list", { limit: LIMIT });
    pick.items = itemsOf(sessions, chats);
    pick.placeholder = pick.items.length > 0 ? "Go on with" : "No conversation is kept yet; ask something to begin one";
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

/** What is kept, after what this window has open and is not kept yet. */
function itemsOf(sessions: SessionSummary[], chats: Chats): SessionItem[] {
  const open = new Map(chats.open.map((chat) => [chat.sessionId, chat]));
  const kept = sessions.map((session) => {
    const count = session.messageCount === 1 ? "1 message" : `${session.messageCount} messages`;
    const when = `${new Date(session.updatedMs).toLocaleString()}, ${count}`;
    return itemOf(session.sessionId, session.title ?? "Without a title", marks(open.get(session.sessionId), chats), when);
  });
  const known = new Set(sessions.map((session) => session.sessionId));
  const unkept = chats.open.flatMap((chat) =>
    chat.sessionId === undefined || known.has(chat.sessionId) ? [] : [itemOf(chat.sessionId, chat.title, marks(chat, chats))],
  );
  return [...unkept, ...kept];
}

function itemOf(sessionId: string, title: string, marks: string[], detail?: string): SessionItem {
  return { sessionId, label: escapeLine(title), description: marks.join(", "), detail, buttons: [DELETE] };
}

function marks(chat: Chat | undefined, chats: Chats): string[] {
  return [...(chat?.isRunning ? ["running"] : []), ...(chat && chat === chats.current ? ["shown"] : [])];
}

function told(error: unknown): void {
  void vscode.window.showErrorMessage(`Agent Sidecar: ${messageOf(error)}`);
}
