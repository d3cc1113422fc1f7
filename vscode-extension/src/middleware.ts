/** What passes between VS Code and the server, changed where a setting asks for it. */
import type { Middleware } from "vscode-languageclient/node";
import { OBSERVE, observeAnswer, offerInTerminal } from "./observe";
import type { ServerSettings } from "./settings";

const SECTION = "evokernel";

/** `settings` answers the ones that hold now, under the server's names. */
export function middleware(settings: () => ServerSettings): Middleware {
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
      const answer: unknown = await next(command, args);
      const observe = command === OBSERVE ? observeAnswer(answer) : undefined;
      if (observe !== undefined) offerInTerminal(observe);
      return answer;
    },
    provideInlayHints: (document, range, token, next) =>
      settings()["inlayHints"] === false ? [] : next(document, range, token),
    provideCodeLenses: (document, token, next) =>
      settings()["codeLens"] === false ? [] : next(document, token),
  };
}
