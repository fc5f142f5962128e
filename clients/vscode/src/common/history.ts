// A session that was kept, as the transcript of it. Pure.

import type { AgentEvent, AgentEventParams, Message, RunCompleted, ToolExecutionCompleted } from "agent-sidecar-client/protocol";

import { ending, type Transcript } from "./transcript";
import { textOf } from "./text";

/**
 * Fills a transcript from the messages of a session. How long calls took and how runs ended is told by the events.
 *
 * Where the history was made smaller, its messages are no longer what was said; then the events alone are shown.
 */
export function historyOf(messages: Message[], events: AgentEventParams[], transcript: Transcript): void {
  if (events.some(({ event }) => event.type === "compacted")) {
    fromEvents(events, transcript);
  } else {
    fromMessages(messages, events, transcript);
  }
  transcript.hush();
}

function fromEvents(events: AgentEventParams[], transcript: Transcript): void {
  for (const { event } of events) {
    if (event.type === "runStarted" && event.prompt != null) {
      sayPrompt(event.prompt, transcript);
    }
    transcript.apply(event);
  }
}

function fromMessages(messages: Message[], events: AgentEventParams[], transcript: Transcript): void {
  const completed = new Map(ofType<ToolExecutionCompleted>(events, "toolExecutionCompleted").map((event) => [event.callId, event]));
  const runs = runsOf(events);
  let open: RunOfEvents | undefined;
  const endRun = (): void => {
    if (open?.end) {
      transcript.note(...ending(open.end.stopReason, open.end.usage, open.end.error ?? undefined));
    }
    open = undefined;
  };
  for (const message of messages) {
    if (message.role === "user" && JSON.stringify(message.content) === runs[0]?.prompt) {
      endRun();
      open = runs.shift();
    }
    show(message, completed, transcript);
  }
  endRun();
}

function show(message: Message, completed: Map<string, ToolExecutionCompleted>, transcript: Transcript): void {
  switch (message.role) {
    case "user":
      return sayPrompt(message.content, transcript);
    case "tool": {
      const event = completed.get(message.callId ?? "");
      const more = { durationMs: event?.durationMs, errorKind: event?.errorKind ?? undefined };
      return transcript.result(message.callId ?? "", message.content, message.isError === true, more);
    }
    case "assistant":
      if (message.reasoning) {
        transcript.apply({ type: "assistantReasoningDelta", text: message.reasoning });
      }
      if (textOf(message.content) !== "") {
        transcript.apply({ type: "assistantTextDelta", text: textOf(message.content) });
      }
      message.toolCalls?.forEach((call) => transcript.apply({ type: "toolExecutionStarted", ...call }));
      return transcript.hush();
    case "system":
      return;
  }
}

/** What the person said is the first block, what went along the others; each of those begins with its name. */
function sayPrompt(content: Message["content"], transcript: Transcript): void {
  if (typeof content === "string") {
    transcript.say(content);
    return;
  }
  const [first, ...rest] = content;
  transcript.say(first ? textOf([first]) : "", rest.map((block) => textOf([block]).split(", as it stands", 1)[0] ?? ""));
}

interface RunOfEvents {
  prompt: string;
  end?: RunCompleted;
}

function runsOf(events: AgentEventParams[]): RunOfEvents[] {
  const runs = new Map<string, RunOfEvents>();
  for (const { runId, event } of events) {
    if (event.type === "runStarted" && event.prompt != null) {
      runs.set(runId, { prompt: JSON.stringify(event.prompt) });
    }
    const run = runs.get(runId);
    if (event.type === "runCompleted" && run) {
      run.end = event;
    }
  }
  return [...runs.values()];
}

function ofType<Event extends AgentEvent>(events: AgentEventParams[], type: Event["type"]): Event[] {
  return events.map(({ event }) => event).filter((event): event is Event => event.type === type);
}
