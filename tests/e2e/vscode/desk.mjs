// What a person does and sees in the window: lines and their hints, the palette, lists, messages, pictures.
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PATIENCE_MS } from "./editor.mjs";

/** Messages slide in; a picture is taken when they stand still. */
const FADE_MS = 700;

const started = Date.now();

/** A line of the log, with the seconds since the start. */
export function step(words) {
  console.log(`[${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s] ${words}`);
}

export function check(holds, otherwise) {
  if (!holds) throw new Error(otherwise);
}

/** Spaces as they are in a file; the editor shows others. */
export const plain = (text) => (text ?? "").replaceAll("\u00a0", " ").trim();

export class Desk {
  constructor(page, shots) {
    this.page = page;
    this.shots = shots;
  }

  async shot(name) {
    await sleep(FADE_MS);
    await this.page.screenshot({ path: path.join(this.shots, `${name}.png`) });
  }

  /** Looks until something is found. A message that the editor shows meanwhile says why it will not come. */
  async until(what, look) {
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const found = await look();
      if (found) return found;
      if (Date.now() > deadline) {
        const said = await this.messages().allTextContents();
        throw new Error(`There was no ${what} within ${PATIENCE_MS / 1000} s; messages: ${JSON.stringify(said)}`);
      }
      await sleep(100);
    }
  }

  messages() {
    return this.page.locator(".notifications-toasts .notification-list-item-message");
  }

  /** The message with these words, once it is there. */
  async said(words) {
    const message = this.messages().filter({ hasText: words }).first();
    await message.waitFor();
    return plain(await message.textContent());
  }

  /** A message goes into the list of messages after some seconds; its buttons are there too. */
  async press(words, button) {
    const shown = this.page.locator(".notifications-toasts .notification-list-item", { hasText: words }).first();
    try {
      await this.pressIn(shown, button, 5_000);
    } catch {
      await this.command("Notifications: Show Notifications");
      await this.pressIn(this.page.locator(".notifications-center .notification-list-item", { hasText: words }).first(), button);
    }
  }

  async pressIn(message, button, timeout) {
    await message.locator(`.monaco-button:has-text("${button}")`).first().click({ timeout });
  }

  async dismissToasts() {
    await this.command("Notifications: Clear All Notifications");
  }

  /** The line of the editor that holds some text. */
  line(text) {
    return this.page.locator(".editor-instance .view-line", { hasText: text }).first();
  }

  async clickLine(text) {
    await this.line(text).click({ position: { x: 150, y: 8 } });
  }

  /** The hint at the end of a line, once its words match. */
  async hint(text, words) {
    const hint = this.line(text).locator("span span", { hasText: words }).last();
    await hint.waitFor();
    return plain(await hint.textContent());
  }

  async status(words) {
    await this.page.locator(".statusbar-item", { hasText: words }).first().waitFor();
  }

  /** Opens the palette. A key is lost while the focus is on its way into a page of an extension: it is pressed again. */
  async quickInput(key) {
    const input = this.page.locator(".quick-input-widget input.input");
    for (let tries = 0; ; tries += 1) {
      await this.page.keyboard.press(key);
      try {
        await input.waitFor({ timeout: 15_000 });
        return input;
      } catch (error) {
        if (tries === 3) throw error;
        await this.page.evaluate(() => document.activeElement?.blur());
      }
    }
  }

  /** Runs a command from the palette by its title. */
  async command(title) {
    const input = await this.quickInput("F1");
    await input.fill(`>${title}`);
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title.split(": ").at(-1) }).first();
    await row.waitFor();
    await row.click();
    // A list that the command opens uses the palette's rows again: it is the palette's until the palette is gone.
    await this.page.locator('.quick-input-widget:visible input[placeholder^="Type the name of a command"]').waitFor({ state: "hidden" });
  }

  /** The rows of the list that is open, which have these words. */
  async rows(words) {
    const rows = this.page.locator(".quick-input-widget:visible .monaco-list-row", { hasText: words });
    await rows.first().waitFor();
    return rows;
  }

  /** Evidence and other pages of extensions are frames within frames. */
  async pageWith(words) {
    let text = "";
    return this.until(`page with ${words}`, async () => {
      for (const frame of this.page.frames()) {
        text = await frame.locator("body").innerText({ timeout: 500 }).catch(() => "");
        if (words.test(text)) return { frame, text };
      }
      return undefined;
    });
  }

  /** What the terminal shows, once these words are in it. */
  async terminal(words) {
    const rows = this.page.locator(".terminal-wrapper.active .xterm-rows");
    // A long line is broken at the terminal's width, with spaces up to it.
    const shown = async () => (await rows.innerText({ timeout: 1_000 }).catch(() => "")).replaceAll("\u00a0", " ");
    return this.until(`terminal with ${words}`, async () => {
      const text = await shown();
      return words.test(text.replaceAll("\n", "")) || words.test(text) ? text : undefined;
    });
  }

  /** Marks of errors: in the code, and on the status item. */
  async red() {
    const squiggles = await this.page.locator(".squiggly-error").count();
    const items = await this.page.locator(".statusbar-item.error-kind", { hasText: "EvoKernel" }).count();
    return squiggles + items;
  }

  /** Opens a file of the workspace by its name. */
  async open(file) {
    const input = await this.quickInput("Control+p");
    await input.fill(file);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: file }).first().waitFor();
    await this.page.keyboard.press("Enter");
    await this.page.locator(".tab.active", { hasText: file }).waitFor();
  }

  /** Room for the code: the explorer is closed. */
  async tidy() {
    await this.page.keyboard.press("Control+b");
    await this.page.locator(".part.sidebar").waitFor({ state: "hidden" });
  }

  async closeEditor() {
    await this.command("View: Close Editor");
  }

  tab(label, state = "") {
    return this.page.locator(`.tab${state}`, { hasText: label }).first();
  }

  /** What the editor does by itself after a decision takes a moment, in which a person only looks. */
  async settle() {
    await sleep(2 * FADE_MS);
  }

  lens(words) {
    return this.page.locator(".codelens-decoration a", { hasText: words }).first();
  }

  diffEditor() {
    return this.page.locator(".monaco-diff-editor").first();
  }

  /** A button of the editor's title bar. */
  titleButton(label) {
    return this.page.locator(`.editor-actions .action-label[aria-label^="${label}"]`).first();
  }

  /** Text of the side of a diff that would be there afterwards. */
  async modified(words) {
    await this.page.locator(".monaco-diff-editor .modified-in-monaco-diff-editor .view-line", { hasText: words }).first().waitFor();
  }
}
