/** The commands about kernels. Each takes the row that was clicked, or is about what is in front of the person. */
import * as vscode from "vscode";
import { ANY_KERNEL, REVIEW, type Decisions } from "./decisions";
import type { Node } from "./kernelsView";
import { goTo, pythonEditor } from "./places";
import type { Reviews } from "./reviews";
import type { Server } from "./server";
import { showTimeline, TIMELINE } from "./timeline";
import { VARIANTS, type Variants } from "./variants";
import type { VariantPlace } from "./variantsPage";
import { verifyPackage } from "./verifyPackage";
import { showReasons, WHY_NOT } from "./whyNot";

export function kernelCommands(
  server: Server,
  decisions: Decisions,
  reviews: Reviews,
  variants: Variants,
): vscode.Disposable[] {
  const table: Readonly<Record<string, (given?: unknown) => unknown>> = {
    reviewKernel: (given) => decisions.review(given),
    acceptKernel: (given) => decisions.accept(given),
    acceptSome: (given) => decisions.acceptSome(given),
    rejectKernel: (given) => decisions.reject(given),
    snoozeKernel: (given) => decisions.snooze(given),
    neverHere: (given) => decisions.neverHere(given),
    offerAgainHere: () => decisions.offerAgain(),
    showChange: () => reviews.showChange(),
    showKernelFiles: () => reviews.showFiles(),
    showKernelFile: (name) => reviews.showFiles(typeof name === "string" ? name : undefined),
    compareVariants: async (given) => {
      const place = await decisions.placeFor(given, ANY_KERNEL);
      if (place !== undefined) variants.show(place, await server.execute(VARIANTS, place));
    },
    compareVariant: (given) => variants.compare(given as VariantPlace),
    reviewVariant: async (given) => decisions.show(await server.execute(REVIEW, given)),
    explainWhyNot: async () => {
      const uri = pythonEditor()?.document.uri.toString();
      if (uri !== undefined) await showReasons(uri, await server.execute(WHY_NOT, { uri }));
    },
    showTimeline: async (given) => {
      const place = await decisions.placeFor(given, ANY_KERNEL);
      if (place !== undefined) await showTimeline(await server.execute(TIMELINE, place));
    },
    revertKernel: (given) => decisions.forKernel("evokernel.revert", given),
    refineKernel: (given) => decisions.forKernel("evokernel.refineNow", given),
    verifyKernel: (given) => verifyPackage(server.candidate, folderOf(given)),
    goToCall: (given) => goToCall(given as Node),
    cancelJobs: () => server.execute("evokernel.cancel", {}),
  };
  return Object.entries(table).map(([name, run]) => vscode.commands.registerCommand(`evokernel.${name}`, run));
}

function folderOf(given: unknown): vscode.Uri | undefined {
  const node = given as Node | undefined;
  return node?.kind === "kernel" ? vscode.Uri.parse(node.folder) : undefined;
}

async function goToCall(node: Node): Promise<void> {
  if (node.kind === "kernel" && node.call !== undefined) await goTo(node.call.uri, node.call.line);
  if (node.kind === "job") await goTo(node.job.uri, node.job.line);
}
