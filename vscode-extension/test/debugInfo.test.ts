import assert from "node:assert/strict";
import { test } from "node:test";
import { debugInfo, type DebugFacts } from "../src/debugInfo";

const FACTS: DebugFacts = {
  extension: "0.1.0",
  editor: "Code 1.91.0",
  remote: "ssh-remote",
  trusted: true,
  server: ".venv of the workspace: /home/ada/ws/.venv/bin/evokernel (0.1.0)",
  passedOver: ["setting evokernel.serverCommand (/nowhere is not an executable file)"],
  crashes: 2,
  status: "error: The server ended unexpectedly.",
  secrets: ["API key: set", "Verifier token: not set"],
  settings: { budget: 30 },
  traceback: "Traceback (most recent call last):\nValueError: x",
  log: "",
};

test("debug info names what a report needs and hides the home folder", () => {
  const text = debugInfo(FACTS, "/home/ada");
  assert.match(text, /^Server: \.venv of the workspace: ~\/ws\/\.venv\/bin\/evokernel \(0\.1\.0\)$/m);
  assert.match(text, /^Editor: Code 1\.91\.0 \(remote: ssh-remote\)$/m);
  assert.match(text, /^API key: set$/m);
  assert.match(text, /Last traceback:\nTraceback/);
  assert.doesNotMatch(text, /ada|Server log/);
});
