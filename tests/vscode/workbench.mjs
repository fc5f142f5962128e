// A VS Code in the browser, as a person uses it: for the scenarios beside this file.

import { createRequire } from "node:module";
import { mkdir } from "node:fs/promises";

/** No single wait is longer. */
export const BOUND_MS = 30_000;
const ATTEMPT_MS = 5_000;

export class Workbench {
  /** A window in a browser of its own. */
  static async open(given, look = {}) {
    const { chromium } = createRequire(given.modules + "/")("playwright-core");
    const browser = await chromium.launch({ executablePath: given.chromium, args: ["--no-sandbox", "--disable-gpu"] });
    const context = await browser.newContext({
      viewport: { width: look.width ?? 1280, height: look.height ?? 820 },
      colorScheme: look.scheme ?? "dark",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    return Workbench.inPage(given, browser, await context.newPage());
  }

  /** A window in the browser that listens at `given.browser`; what that has loaded before it need not load again. */
  static async openIn(given) {
    const { chromium } = createRequire(given.modules + "/")("playwright-core");
    const browser = await chromium.connectOverCDP(given.browser);
    return Workbench.inPage(given, browser, await browser.contexts()[0].newPage());
  }

  static async inPage(given, browser, page) {
    page.setDefaultTimeout(BOUND_MS);
    const bench = new Workbench(given, browser, page);
    await bench.goto(given.folder);
    return bench;
  }

  constructor(given, browser, page) {
    Object.assign(this, { given, browser, page, violations: [] });
    page.on("console", (message) => {
      if (/Content Security Policy|Content-Security-Policy/.test(message.text())) this.violations.push(message.text());
      if (process.env.SHOW_CONSOLE) console.error("console:", message.type(), message.text().slice(0, 300));
    });
    page.on("pageerror", (error) => process.env.SHOW_CONSOLE && console.error("pageerror:", String(error).slice(0, 300)));
  }

  async goto(folder) {
    await this.page.goto(`${this.given.url}/?folder=${encodeURIComponent(folder)}`);
    await this.page.locator(".monaco-workbench").waitFor();
    await this.page.locator(".statusbar-item", { hasText: "Sidecar" }).waitFor(); // The extension is there.
  }

  /** Runs a command by its title. */
  async command(title) {
    const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: title }).first();
    await this.pick("F1", `>${title}`, row);
  }

  /** Opens the list of a key, types, and clicks the row. A list closes when the focus moves, so that it may take two. */
  async pick(key, text, row) {
    const input = this.page.locator(".quick-input-widget input").first();
    const isPicked = async () => {
      await this.page.keyboard.press(key);
      try {
        await input.fill(text, { timeout: ATTEMPT_MS });
        await row.click({ timeout: ATTEMPT_MS });
        return true;
      } catch {
        return false;
      }
    };
    await until(isPicked, `${text} in the list`);
  }

  /** The frame of the chat. */
  async chat() {
    const found = async () => {
      for (const frame of this.page.frames()) {
        if (await frame.locator("#conversation").count().catch(() => 0)) return frame;
      }
      return undefined;
    };
    return until(found, "the chat");
  }

  async openFile(name) {
    const row = this.page.locator(".quick-input-list .monaco-list-row").filter({ hasText: name }).first();
    await this.pick("Control+P", name, row);
    await this.page.locator(`.tab[data-resource-name="${name}"]`).first().waitFor();
  }

  editorText() {
    return this.page.locator(".editor-instance .view-lines").last().innerText();
  }

  notification(text) {
    return this.page.locator(".notification-list-item").filter({ hasText: text });
  }

  async picture(name) {
    if (this.given.pictures) {
      await mkdir(this.given.pictures, { recursive: true });
      await this.page.screenshot({ path: `${this.given.pictures}/${name}.png` });
    }
  }

  close() {
    return this.browser.close();
  }
}

/** Writes a prompt in the chat and sends it. */
export async function say(chat, text) {
  await chat.locator("textarea").fill(text);
  await chat.locator("textarea").press("Enter");
}

/** Asks again and again until there is an answer that counts. */
export async function until(ask, what, boundMs = BOUND_MS) {
  const end = Date.now() + boundMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`${what} did not come within ${boundMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
