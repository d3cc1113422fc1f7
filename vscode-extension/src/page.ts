/** Makes a self-contained page of the server's fit for a webview. Knows no VS Code. */

/**
 * Only the page's own scripts run, and it loads nothing. `nonce` is a fresh random word. The page is dark where
 * the editor is: what it asks of the system is answered with that.
 */
export function pageForEditor(page: string, nonce: string, dark: boolean): string {
  const policy = `default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'`;
  return page
    .replaceAll("(prefers-color-scheme: dark)", dark ? "all" : "not all")
    .replaceAll("color-scheme: light dark", `color-scheme: ${dark ? "dark" : "light"}`)
    .replace(/<script\b/g, `<script nonce="${nonce}"`)
    .replace(/<head>/, `<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
}
