// Markdown as nodes. There is no HTML on the way: tokens become elements of a few known kinds, text becomes text.

import MarkdownIt, { type Token } from "markdown-it";

import { button, element } from "./dom";

const parser = new MarkdownIt({ html: false, linkify: true });
// A link leads to a page, or to a file of the workspace; anything else stays text.
parser.validateLink = (url) => /^(https?:|mailto:|[^:]*$|[^:]*:\d+$)/i.test(url.trim());
// What is not written as a link is one only where nobody can take it for something else.
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false });

const ELEMENTS = new Set([
  "p", "ul", "ol", "li", "blockquote", "hr", "table", "thead", "tbody", "tr", "th", "td",
  "strong", "em", "s", "a", "h1", "h2", "h3", "h4", "h5", "h6",
]);

/** The answer's own headings stand below those of the page. */
const HEADINGS: Record<string, string> = { h1: "h3", h2: "h4", h3: "h5", h4: "h6", h5: "h6" };

/** What a text refers to (`[name]: url`), kept from block to block. */
export type References = Record<string, unknown>;

export function parse(text: string, references: References = {}): Token[] {
  return parser.parse(text, references);
}

/** Appends what the tokens stand for. */
export function render(tokens: Token[], into: Node): void {
  const open: Node[] = [into];
  for (const token of tokens) {
    const parent = open.at(-1) ?? into;
    if (token.hidden) {
      continue; // The paragraphs of tight lists.
    }
    if (token.nesting === 1) {
      open.push(parent.appendChild(opened(token)));
    } else if (token.nesting === -1) {
      open.pop();
    } else {
      leaf(token, parent);
    }
  }
}

function opened(token: Token): HTMLElement {
  const name = HEADINGS[token.tag] ?? token.tag;
  const made = document.createElement(ELEMENTS.has(token.tag) ? name : "span");
  const href = token.tag === "a" ? attribute(token, "href") : "";
  if (href) {
    made.setAttribute("href", href);
    made.setAttribute("title", attribute(token, "title") || href);
  }
  const start = token.tag === "ol" ? attribute(token, "start") : "";
  if (start) {
    made.setAttribute("start", start);
  }
  const alignment = /text-align:(left|center|right)/.exec(attribute(token, "style"))?.[1];
  if (alignment) {
    made.className = `align-${alignment}`;
  }
  return made;
}

function leaf(token: Token, parent: Node): void {
  switch (token.type) {
    case "inline":
      return render(token.children ?? [], parent);
    case "text":
    case "text_special":
      return void parent.appendChild(document.createTextNode(token.content));
    case "softbreak":
      return void parent.appendChild(document.createTextNode("\n"));
    case "hardbreak":
      return void parent.appendChild(document.createElement("br"));
    case "code_inline":
      return void parent.appendChild(element("code", {}, token.content));
    case "hr":
      return void parent.appendChild(document.createElement("hr"));
    case "fence":
    case "code_block":
      return void parent.appendChild(code(token.content, token.info.trim().split(/\s/, 1)[0] ?? ""));
    case "image":
      return void parent.appendChild(picture(token));
    default:
      return void parent.appendChild(document.createTextNode(token.content));
  }
}

function code(text: string, language: string): HTMLElement {
  const copy = button("Copy", () => {
    void navigator.clipboard.writeText(text).then(() => {
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
  }, { class: "quiet", "aria-label": language ? `Copy this ${language}` : "Copy this text" });
  const head = element("div", { class: "code-head" }, element("span", {}, language), copy);
  const body = element("pre", { tabindex: "0" }, element("code", {}, text));
  return element("div", { class: "code" }, head, body);
}

function attribute(token: Token, name: string): string {
  return String(token.attrGet(name) ?? "");
}

/** A picture is not fetched: its address would tell its owner what was said here. */
function picture(token: Token): HTMLElement {
  const source = attribute(token, "src");
  return element("a", { href: source, title: source }, `[picture: ${token.content || source}]`);
}

/** Own choice: so many blocks are laid out, or left out of sight, together. */
const BLOCKS_IN_PART = 40;

/**
 * Markdown that streams in. Blocks that nothing can change any more stay as they are; only the last is made anew, so
 * that the work for a delta does not grow with the answer.
 */
export class MarkdownStream {
  private text = "";
  private readonly references: References = {};
  private readonly last = element("div", { class: "last" });
  private part = element("div", { class: "part" });

  constructor(into: HTMLElement) {
    into.append(this.part, this.last);
  }

  append(text: string): void {
    this.text += text;
  }

  /** Shows what has been appended. */
  flush(): void {
    const tokens = parse(this.text, this.references);
    const settled = lastBlock(tokens);
    if (settled > 0) {
      render(tokens.slice(0, settled), this.part);
      if (this.part.childElementCount >= BLOCKS_IN_PART) {
        this.part.classList.add("whole");
        this.part = element("div", { class: "part" });
        this.last.before(this.part);
      }
      this.text = linesFrom(this.text, tokens[settled]?.map?.[0] ?? 0);
    }
    this.last.replaceChildren();
    render(tokens.slice(settled), this.last);
  }
}

/** Where the last block at the top level begins. */
function lastBlock(tokens: Token[]): number {
  for (let index = tokens.length - 1; index >= 0; index--) {
    const token = tokens[index];
    if (token?.level === 0 && token.nesting >= 0) {
      return index;
    }
  }
  return 0;
}

function linesFrom(text: string, line: number): string {
  let at = 0;
  for (let count = 0; count < line; count++) {
    at = text.indexOf("\n", at) + 1;
  }
  return text.slice(at);
}
