// Text in a Markdown fence. Pure.

/** Text in a fence that nothing inside can close. */
export function fenced(body: string, language: string): string {
  let fence = "```";
  while (body.includes(fence)) {
    fence += "`";
  }
  return `${fence}${language}\n${body}${body.endsWith("\n") ? "" : "\n"}${fence}`;
}
