/** What passes between VS Code and the server, changed where a setting asks for it. */
import type { Middleware } from "vscode-languageclient/node";
import type { ServerSettings } from "./settings";

const SECTION = "evokernel";

/** Commands that a person's editor has a part in, wherever they were started: a lens, a hint, an action. */
export interface Commands {
  /** The arguments to send; undefined where the person gave up. */
  readonly before: (command: string, given: unknown[]) => Promise<unknown[] | undefined>;
  readonly after: (command: string, given: unknown[], answer: unknown) => void;
}

/** `settings` answers the ones that hold now, under the server's names. */
export function middleware(settings: () => ServerSettings, commands: Commands): Middleware {
  return {
    workspace: {
      configuration: async (params, token, next) => {
        const answers = await next(params, token);
        if (!Array.isArray(answers)) return answers;
        return answers.map((answer: unknown, index) =>
          params.items[index]?.section === SECTION ? settings() : answer,
        );
      },
      // The extension itself sends the settings, under the server's names.
      didChangeConfiguration: () => Promise.resolve(),
    },
    executeCommand: async (command, args, next) => {
      const given = await commands.before(command, args as unknown[]);
      if (given === undefined) return undefined;
      const answer: unknown = await next(command, given);
      commands.after(command, given, answer);
      return answer;
    },
    provideInlayHints: (document, range, token, next) =>
      settings()["inlayHints"] === false ? [] : next(document, range, token),
  };
}
