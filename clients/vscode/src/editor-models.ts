// The editor's own models (`vscode.lm`), lent to the sidecar as `host/ID` where there are any.

import type { ModelContext } from "agent-sidecar-client";
import type { Message, ModelCompleteParams, ModelCompleteResult, ToolCall } from "agent-sidecar-client/protocol";
import * as vscode from "vscode";

import { textOf } from "./common/text";

const PROVIDER = "host";

/** The editor's models, by the names that the sidecar takes. */
export async function editorModels(): Promise<{ model: string; name: string; vendor: string }[]> {
  const models = await vscode.lm.selectChatModels();
  return models.map(({ id, name, vendor }) => ({ model: `${PROVIDER}/${id}`, name, vendor }));
}

/** The answer to `model/complete`. Text is told as it comes. */
export async function complete(
  params: ModelCompleteParams,
  { signal, delta }: ModelContext,
): Promise<ModelCompleteResult> {
  const model = await find(params.model ?? undefined);
  const withdrawn = new vscode.CancellationTokenSource();
  signal.addEventListener("abort", () => withdrawn.cancel(), { once: true });
  try {
    const response = await model.sendRequest(messagesOf(params), requestOptions(params), withdrawn.token);
    return { message: await gather(response, delta) };
  } finally {
    withdrawn.dispose();
  }
}

async function find(id: string | undefined): Promise<vscode.LanguageModelChat> {
  const [model] = await vscode.lm.selectChatModels(id ? { id } : undefined);
  if (!model) {
    throw new Error(`the editor has no model ${id ?? "at all"}; choose another with "Agent Sidecar: Select Model"`);
  }
  return model;
}

async function gather(response: vscode.LanguageModelChatResponse, tell: (text: string) => void): Promise<Message> {
  let content = "";
  const toolCalls: ToolCall[] = [];
  for await (const part of response.stream) {
    if (part instanceof vscode.LanguageModelTextPart) {
      content += part.value;
      tell(part.value);
    } else if (part instanceof vscode.LanguageModelToolCallPart) {
      toolCalls.push({ callId: part.callId, toolName: part.name, input: { ...part.input } });
    }
  }
  return { role: "assistant", content, toolCalls: toolCalls.length > 0 ? toolCalls : undefined };
}

function requestOptions({ tools, temperature, maxOutputTokens }: ModelCompleteParams): vscode.LanguageModelChatRequestOptions {
  const options = { temperature: temperature ?? undefined, max_tokens: maxOutputTokens ?? undefined };
  return {
    justification: "You have chosen this model in Agent Sidecar.",
    tools: tools.map(({ name, description, parameters }) => ({ name, description, inputSchema: parameters })),
    modelOptions: Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)),
  };
}

function messagesOf({ system, messages }: ModelCompleteParams): vscode.LanguageModelChatMessage[] {
  // The editor's models know no system role.
  const said = system ? [vscode.LanguageModelChatMessage.User(system)] : [];
  return [...said, ...messages.map(messageOf)];
}

function messageOf(message: Message): vscode.LanguageModelChatMessage {
  const text = textOf(message.content);
  switch (message.role) {
    case "assistant": {
      const calls = (message.toolCalls ?? []).map(({ callId, toolName, input }) => new vscode.LanguageModelToolCallPart(callId, toolName, input));
      const parts = text === "" ? calls : [new vscode.LanguageModelTextPart(text), ...calls];
      return vscode.LanguageModelChatMessage.Assistant(parts);
    }
    case "tool": {
      const parts = [new vscode.LanguageModelTextPart(text)];
      return vscode.LanguageModelChatMessage.User([new vscode.LanguageModelToolResultPart(message.callId ?? "", parts)]);
    }
    default:
      return vscode.LanguageModelChatMessage.User(text);
  }
}
