// Questions whether a call may run, from when they are asked until somebody or something has answered.

import type { ApprovalDecision, RequestApprovalParams, RequestApprovalResult } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

export interface OpenQuestion {
  params: RequestApprovalParams;
  answer: (result: RequestApprovalResult) => void;
}

export class Questions implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly asked = new vscode.EventEmitter<RequestApprovalParams>();
  private readonly closed = new vscode.EventEmitter<string>();
  /** There are more or fewer than before. */
  readonly onChanged = this.changed.event;
  readonly onAsked = this.asked.event;
  /** A question is over: the id of its request. */
  readonly onClosed = this.closed.event;
  private readonly open = new Map<string, OpenQuestion>();

  /** The one that waits for the longest time. */
  get oldest(): RequestApprovalParams | undefined {
    return this.open.values().next().value?.params;
  }

  get count(): number {
    return this.open.size;
  }

  get(requestId: string): RequestApprovalParams | undefined {
    return this.open.get(requestId)?.params;
  }

  /** The answer to `agent/requestApproval`: a person's, or the default when it is withdrawn or too late. */
  ask(params: RequestApprovalParams, signal: AbortSignal): Promise<RequestApprovalResult> {
    return new Promise((answer) => {
      // Too late, withdrawn, or nobody is there who asked.
      signal.addEventListener("abort", () => this.withdraw(params.requestId), { once: true });
      this.open.set(params.requestId, { params, answer });
      this.asked.fire(params);
      this.changed.fire();
    });
  }

  /** Answers a question that is still open. False where it is not, or has no such answer. */
  decide(requestId: string, decision: ApprovalDecision, reason?: string): boolean {
    const isOffered = this.open.get(requestId)?.params.options.some((option) => option.decision === decision);
    if (isOffered) {
      this.answer(requestId, { decision, reason: reason?.trim() || undefined });
    }
    return isOffered === true;
  }

  /** Takes a question away that was answered elsewhere. */
  withdraw(requestId: string): void {
    // The sidecar takes no notice of an answer to a question that it has withdrawn.
    this.answer(requestId, { decision: "deny" });
  }

  /** Takes all away: the sidecar that asked is gone. */
  withdrawAll(): void {
    [...this.open.keys()].forEach((requestId) => this.withdraw(requestId));
  }

  dispose(): void {
    this.withdrawAll();
    for (const emitter of [this.changed, this.asked, this.closed]) {
      emitter.dispose();
    }
  }

  private answer(requestId: string, result: RequestApprovalResult): void {
    const question = this.open.get(requestId);
    if (question) {
      this.open.delete(requestId);
      question.answer(result);
      this.closed.fire(requestId);
      this.changed.fire();
    }
  }
}
