// The HTML of the chat: nothing but its frame. Everything in it is made by the script, as nodes and not as text. Pure.

export interface PageParts {
  nonce: string;
  cspSource: string;
  script: string;
  style: string;
}

/** What the page may load: one script, one style sheet. No pictures, no frames, no requests, no inline anything. */
export function contentSecurityPolicy({ nonce, cspSource }: Pick<PageParts, "nonce" | "cspSource">): string {
  return `default-src 'none'; style-src ${cspSource}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
}

export function page(parts: PageParts): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy(parts)}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${parts.style}">
  <title>Agent Sidecar</title>
</head>
<body>
  <main id="conversation" tabindex="0" aria-label="Conversation"></main>
  <div id="announcer" class="only-spoken" role="status" aria-live="polite"></div>
  <footer id="below"></footer>
  <script nonce="${parts.nonce}" src="${parts.script}"></script>
</body>
</html>`;
}
