"""The names of the commands, which clients bind to."""

from __future__ import annotations

GENERATE = "evokernel.generate"
USE_VENDOR = "evokernel.useVendor"
APPLY = "evokernel.apply"
SHOW_DIFF = "evokernel.showDiff"
PREVIEW = "evokernel.preview"
REJECT = "evokernel.reject"
SNOOZE = "evokernel.snooze"
REVERT = "evokernel.revert"
RESTORE = "evokernel.restorePackage"
REFINE_NOW = "evokernel.refineNow"
INSERT_SHAPES = "evokernel.insertShapes"
OBSERVE = "evokernel.observe"
CANCEL = "evokernel.cancel"
TRUST = "evokernel.trust"
STATUS = "evokernel.status"
