// The HTML of the chat: nothing but its frame. Everything in it is made by the script, as nodes and not as text. Pure.

export interface PageParts {
  nonce: string;
  /** The texts themselves: a page that loads nothing cannot be there without its script. */
  script: string;
  style: string;
}

/** What the page may load: nothing. What it may run: the one script that it holds. */
export function contentSecurityPolicy(nonce: string): string {
  return `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
}

export function page(parts: PageParts): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="UTF-8">
  <meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy(parts.nonce)}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <style nonce="${parts.nonce}">${parts.style}</style>
  <title>Agent Sidecar</title>
</head>
<body>
  <main id="conversation" tabindex="0" aria-label="Conversation"></main>
  <div id="announcer" class="only-spoken" role="status" aria-live="polite"></div>
  <footer id="below"></footer>
  <script nonce="${parts.nonce}">${parts.script}</script>
</body>
</html>`;
}
