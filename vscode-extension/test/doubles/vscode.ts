/**
 * A stand-in for the editor, for tests that run without one: it notes what is asked of it and chooses what a test
 * tells it to. The real editor is in tests/e2e/vscode.
 */
type Run = (...given: unknown[]) => unknown;

export class Uri {
  private constructor(
    readonly scheme: string,
    readonly path: string,
    readonly query = "",
  ) {}
  static parse(text: string): Uri {
    const [scheme, ...rest] = text.split(":");
    return new Uri(scheme ?? "", rest.join(":").replace(/^\/\//, ""));
  }
  static file(path: string): Uri {
    return new Uri("file", path);
  }
  static from({ scheme, path, query }: { scheme: string; path: string; query: string }): Uri {
    return new Uri(scheme, path, query);
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}://${this.path}${this.query === "" ? "" : `?${this.query}`}`;
  }
}

export class Position {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {}
}

export class Range {
  constructor(
    readonly start: Position,
    readonly end: Position,
  ) {}
}

export class TabInputTextDiff {
  constructor(
    readonly original: Uri,
    readonly modified: Uri,
  ) {}
}

export class TabInputWebview {
  constructor(readonly viewType: string) {}
}

export class EventEmitter<T> {
  private readonly heard: ((told: T) => void)[] = [];
  readonly event = (hear: (told: T) => void): void => {
    this.heard.push(hear);
  };
  fire(told: T): void {
    for (const hear of this.heard) hear(told);
  }
  dispose(): void {
    this.heard.length = 0;
  }
}

export class ThemeIcon {
  constructor(readonly id: string) {}
}

export const ViewColumn = { Active: -1, Beside: -2 };
export const CodeActionKind = { RefactorRewrite: { value: "refactor.rewrite" } };
export const env = { language: "en" };

interface Tab {
  readonly label: string;
  readonly input: unknown;
}

/** What a test sets and looks at. */
export const desk = {
  /** Commands that ran, with their arguments. */
  ran: [] as [string, ...unknown[]][],
  context: {} as Record<string, unknown>,
  tabs: [] as Tab[],
  said: [] as string[],
  /** Of what was said, what stood in a message over the code. */
  toasts: [] as string[],
  /** Chooses among the labels of a list; undefined: the person pressed Escape. */
  choose: (() => undefined) as (labels: string[]) => string[] | undefined,
  type: "" as string | undefined,
  answers: {} as Record<string, Run>,
  opened: [] as string[],
  page: "",
  editors: [] as { document: { uri: Uri }; visibleRanges: Range[] }[],
  settings: {} as Record<string, unknown>,
};

export function clearDesk(): void {
  Object.assign(desk, { ran: [], context: {}, tabs: [], said: [], toasts: [], choose: () => undefined, type: "", answers: {} });
  Object.assign(desk, { opened: [], page: "", editors: [], settings: {} });
}

export const commands = {
  executeCommand: (command: string, ...given: unknown[]): Promise<unknown> => {
    if (command === "setContext") desk.context[given[0] as string] = given[1];
    else desk.ran.push([command, ...given]);
    if (command === "vscode.diff") {
      desk.tabs.push({ label: given[2] as string, input: new TabInputTextDiff(given[0] as Uri, given[1] as Uri) });
    }
    if (command === "vscode.changes") {
      desk.tabs.push({ label: `${given[0] as string} (2 files)`, input: { textDiffs: [] } });
    }
    return Promise.resolve(desk.answers[command]?.(...given));
  },
};

export const ConfigurationTarget = { Global: 1, Workspace: 2 };

export const workspace = {
  workspaceFolders: [{}],
  getConfiguration: (): { get: (key: string) => unknown; update: (key: string, value: unknown, where: number) => Promise<void> } => ({
    get: (key) => desk.settings[key],
    update: (key, value, where) => {
      desk.settings[key] = value;
      desk.ran.push(["update", key, value, where]);
      return Promise.resolve();
    },
  }),
  registerTextDocumentContentProvider: (): { dispose: () => void } => ({ dispose: () => undefined }),
};

interface Item {
  readonly label: string;
}

class Picker {
  items: readonly Item[] = [];
  selected: readonly Item[] = [];
  private accept: Run = () => undefined;
  private hidden: Run = () => undefined;
  private selection: Run = () => undefined;
  get selectedItems(): readonly Item[] {
    return this.selected;
  }
  /** As in the editor, a selection that the program makes is told like one of the person. */
  set selectedItems(items: readonly Item[]) {
    this.selected = items;
    this.selection(items);
  }
  onDidAccept(run: Run): void {
    this.accept = run;
  }
  onDidHide(run: Run): void {
    this.hidden = run;
  }
  onDidChangeSelection(run: Run): void {
    this.selection = run;
  }
  /** The person ticks one box after the other. */
  show(): void {
    const labels = desk.choose(this.items.map(({ label }) => label));
    if (labels === undefined) {
      this.hidden();
      return;
    }
    for (const label of labels) {
      this.selectedItems = [...this.selected, ...this.items.filter((item) => item.label === label)];
    }
    this.accept();
  }
  hide(): void {
    this.hidden();
  }
  dispose(): void {
    // Nothing is held.
  }
}

const event = (): { dispose: () => void } => ({ dispose: () => undefined });
const scrolled: Run[] = [];

/** The person scrolls, so that these lines of a document are what is seen. */
export function scroll(uri: Uri, first: number, last: number): void {
  desk.editors = [{ document: { uri }, visibleRanges: [new Range(new Position(first, 0), new Position(last, 0))] }];
  for (const look of scrolled) look();
}

export const window = {
  activeTextEditor: undefined as unknown,
  get visibleTextEditors(): unknown {
    return desk.editors;
  },
  onDidChangeVisibleTextEditors: event,
  onDidChangeTextEditorVisibleRanges: (look: Run): { dispose: () => void } => {
    scrolled.push(look);
    return { dispose: () => undefined };
  },
  tabGroups: {
    onDidChangeTabs: event,
    onDidChangeTabGroups: event,
    get all(): { tabs: Tab[] }[] {
      return [{ tabs: desk.tabs }];
    },
    get activeTabGroup(): { activeTab: Tab | undefined } {
      return { activeTab: desk.tabs.at(-1) };
    },
    close: (tabs: Tab[]): Promise<boolean> => {
      desk.tabs = desk.tabs.filter((tab) => !tabs.includes(tab));
      return Promise.resolve(true);
    },
  },
  createWebviewPanel: (): unknown => ({
    title: "",
    webview: {
      set html(text: string) {
        desk.page = text;
      },
    },
    onDidDispose: event,
    reveal: () => undefined,
    dispose: () => undefined,
  }),
  createQuickPick: (): Picker => new Picker(),
  showQuickPick: (items: readonly Item[]): Promise<Item | undefined> => {
    const chosen = desk.choose(items.map(({ label }) => label));
    return Promise.resolve(items.find(({ label }) => label === chosen?.[0]));
  },
  showInputBox: (): Promise<string | undefined> => Promise.resolve(desk.type),
  showInformationMessage: (said: string, ...buttons: string[]): Promise<string | undefined> => {
    desk.said.push(said);
    desk.toasts.push(said);
    return Promise.resolve(desk.choose(buttons)?.[0]);
  },
  setStatusBarMessage: (said: string): void => {
    desk.said.push(said);
  },
  showTextDocument: (uri: Uri, options: { selection: Range }): Promise<void> => {
    desk.opened.push(`${uri.path}:${options.selection.start.line}`);
    return Promise.resolve();
  },
};
