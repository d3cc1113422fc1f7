/** The document around the dashboard's page: its policy, its style, its script, and words for it. */
import { html } from "./markup";

export interface Shell {
  readonly nonce: string;
  /** What the policy calls the editor's own resources. */
  readonly source: string;
  readonly script: string;
  readonly style: string;
  readonly locale: string;
  /** Translations by their English, empty for English. */
  readonly words: Readonly<Record<string, string>>;
}

/** Nothing is loaded but the extension's own script and style; no script but that one runs. */
export function shell({ nonce, source, script, style, locale, words }: Shell): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`;
  return html`<!DOCTYPE html>
<html lang="${locale}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>EvoKernel</title>
</head>
<body data-words="${JSON.stringify(words)}">
<div id="news" class="unseen" role="status"></div>
<main id="page"></main>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`.html;
}
