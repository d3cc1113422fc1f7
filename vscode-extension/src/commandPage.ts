/**
 * A page of a panel that holds no script: its links run the commands that the panel allows, and its colours are
 * the editor's.
 */

/** `nonce` is a fresh random word; only the style that carries it is used. */
export function commandPage(title: string, body: string, nonce: string, language: string): string {
  return `<!doctype html>
<html lang="${escape(language)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'">
<title>${escape(title)}</title>
<style nonce="${nonce}">${STYLE}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>`;
}

export function link(command: string, words: string, look = "", argument?: unknown): string {
  const query = argument === undefined ? "" : `?${encodeURIComponent(JSON.stringify([argument]))}`;
  return `<a class="button ${look}" href="command:${command}${escape(query)}">${escape(words)}</a>`;
}

/** Names of files, chips and operators are others' words: none of them becomes markup. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

const STYLE = `
body { padding: 0 20px 24px; font: var(--vscode-font-size)/1.5 var(--vscode-font-family); color: var(--vscode-foreground); }
header, section, details, main > p { max-width: 46em; }
h1 { font-size: 1.35em; margin: 16px 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1em; margin: 18px 0 4px; }
p { margin: 4px 0; }
.lead { font-size: 1.1em; font-variant-numeric: tabular-nums; }
.quiet { color: var(--vscode-descriptionForeground); }
ul { margin: 4px 0; padding-left: 1.3em; }
code { font-family: var(--vscode-editor-font-family); }
table { border-collapse: collapse; }
th, td { text-align: left; font-weight: normal; vertical-align: top; padding: 1px 14px 1px 0; overflow-wrap: anywhere; }
summary { font-weight: bold; margin: 12px 0 4px; cursor: pointer; }
@media (max-width: 440px) { .bar { display: none; } }
.ruled td, .ruled th { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--vscode-editorWidget-border); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
svg { width: 120px; height: 8px; vertical-align: middle; }
.track { fill: var(--vscode-editorWidget-background); }
.fill { fill: var(--vscode-charts-blue); }
nav, .links { display: flex; flex-wrap: wrap; gap: 6px; }
nav { margin: 10px 0; }
a.button { padding: 3px 10px; border-radius: 3px; text-decoration: none; border: 1px solid var(--vscode-button-border, transparent);
  color: var(--vscode-button-secondaryForeground); background: var(--vscode-button-secondaryBackground); }
a.button:hover { background: var(--vscode-button-secondaryHoverBackground); }
a.primary { color: var(--vscode-button-foreground); background: var(--vscode-button-background); }
a.primary:hover { background: var(--vscode-button-hoverBackground); }
a.plain { padding: 0; border: 0; background: none; color: var(--vscode-textLink-foreground); }
a.plain:hover { background: none; text-decoration: underline; }
a:focus-visible, summary:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 2px; }
.vscode-high-contrast a.button { border: 1px solid var(--vscode-contrastBorder); }
.vscode-high-contrast .track { fill: none; stroke: var(--vscode-contrastBorder); }
.vscode-high-contrast .fill { fill: var(--vscode-foreground); }
`;
