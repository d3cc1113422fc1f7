"""The one table of the AscendC interface of Atlas A2: what each function takes, and within which limits.

Its data lies in ``table/*.toml``. The twin checks kernels by it (``header`` makes C++ of it when the twin is
built), the author keeps its kernels within its limits, and knowledge cards are made of it.
"""

from evokernel_core.hardware.ascend.api.rows import (
    DTYPES,
    ApiRow,
    Limit,
    TypeRule,
    api_row,
    api_rows,
    interface_words,
    most_of,
    named,
)

__all__ = [
    "DTYPES",
    "ApiRow",
    "Limit",
    "TypeRule",
    "api_row",
    "api_rows",
    "interface_words",
    "most_of",
    "named",
]
