/** Makes a self-contained page of the server's fit for a webview. Knows no VS Code. */

/** Only the page's own scripts run, and it loads nothing. `nonce` is a fresh random word. */
export function pageWithPolicy(page: string, nonce: string): string {
  const policy = `default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'`;
  return page
    .replace(/<script\b/g, `<script nonce="${nonce}"`)
    .replace(/<head>/, `<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`);
}
