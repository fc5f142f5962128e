/** What this host answers to the sidecar's requests, from its callbacks and tools. */
import type {
  ApprovalDecision,
  ModelCompleteParams,
  ModelCompleteResult,
  RequestApprovalParams,
  RequestApprovalResult,
  RequestInputParams,
  RequestInputResult,
  ToolsExecuteParams,
  ToolsExecuteResult,
} from "./protocol.js";
import type {
  Answerer,
  HostSettings,
  ModelContext,
  ModelReply,
  QuestionContext,
  RunnableTool,
  ToolContext,
} from "./settings.js";

/** Sends a notification to the sidecar. */
export type Notify = (method: string, params: object) => void;

/** The answerer of each method that this host answers. */
export function answerersOf(
  settings: HostSettings,
  tools: ReadonlyMap<string, RunnableTool>,
  notify: Notify,
): ReadonlyMap<string, Answerer> {
  const { onApproval, onInput, onModel } = settings;
  const answerers = new Map<string, Answerer>();
  answerers.set("tools/execute", (params: ToolsExecuteParams, context: QuestionContext) =>
    execute(tools.get(params.name), params, context, notify),
  );
  if (onApproval) {
    answerers.set("agent/requestApproval", async (question: RequestApprovalParams, context: QuestionContext) =>
      approvalResult(question, await onApproval(question, context)),
    );
  }
  if (onInput) {
    answerers.set("agent/requestInput", async (question: RequestInputParams, context: QuestionContext) =>
      inputResult(await onInput(question, context)),
    );
  }
  if (onModel) {
    answerers.set("model/complete", (request: ModelCompleteParams, context: QuestionContext) => {
      const delta = (text: string): void => notify("model/delta", { requestId: request.requestId, text });
      return completion(onModel(request, { ...context, delta }), { ...context, delta });
    });
  }
  for (const [method, answerer] of Object.entries(settings.answerers ?? {})) answerers.set(method, answerer);
  return answerers;
}

/** Throws where the decision is none of those that were offered. */
function approvalResult(
  { options }: RequestApprovalParams,
  answer: ApprovalDecision | RequestApprovalResult,
): RequestApprovalResult {
  const result = typeof answer === "string" ? { decision: answer } : answer;
  if (options?.every(({ decision }) => decision !== result.decision)) {
    const offered = options.map(({ decision }) => decision).join(", ");
    throw new RangeError(`${JSON.stringify(result.decision)} is none of what was offered: ${offered}`);
  }
  return result;
}

function inputResult(answer: unknown): RequestInputResult {
  if (answer === undefined || answer === null) return { action: "decline" };
  return isWholeInputResult(answer) ? answer : { action: "accept", content: answer };
}

function isWholeInputResult(answer: unknown): answer is RequestInputResult {
  const actions: unknown[] = ["accept", "decline", "cancel"];
  return typeof answer === "object" && answer !== null && "action" in answer && actions.includes(answer.action);
}

/** Runs a tool; what it throws is told to the model, which may try another way. */
async function execute(
  tool: RunnableTool | undefined,
  params: ToolsExecuteParams,
  context: QuestionContext,
  notify: Notify,
): Promise<ToolsExecuteResult> {
  if (!tool) return { ok: false, error: `this host has no tool ${JSON.stringify(params.name)}` };
  try {
    const data = await tool.run(params.arguments, toolContext(params, context, notify));
    return data === undefined ? { ok: true } : { ok: true, data };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) };
  }
}

function toolContext(params: ToolsExecuteParams, context: QuestionContext, notify: Notify): ToolContext {
  return {
    ...context,
    callId: params.callId,
    sessionId: params.sessionId ?? undefined,
    runId: params.runId ?? undefined,
    progress({ done, total, message }) {
      const percentage = done !== undefined && total ? Math.round((100 * done) / total) : undefined;
      notify("$/progress", { token: params.callId, value: { kind: "report", message, percentage } });
    },
  };
}

async function completion(reply: ModelReply, context: ModelContext): Promise<ModelCompleteResult> {
  if (isStream(reply)) {
    const pieces: string[] = [];
    for await (const piece of reply) {
      context.signal.throwIfAborted();
      context.delta(piece);
      pieces.push(piece);
    }
    return said(pieces.join(""));
  }
  const answer = await reply;
  return typeof answer === "string" ? said(answer) : answer;
}

function isStream(reply: ModelReply): reply is AsyncIterable<string> {
  return typeof reply === "object" && Symbol.asyncIterator in reply;
}

function said(text: string): ModelCompleteResult {
  return { message: { role: "assistant", content: text } };
}
