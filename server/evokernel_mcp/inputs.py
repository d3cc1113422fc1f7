"""What tools take: parts of lists, sources, and a launch of a bare kernel as in a LAUNCH.json."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_SOURCE = 256 * 1024
"""Characters of a kernel's file; the largest that we write has some 100,000."""

Offset = Annotated[int, Field(ge=0, description="Where to go on: next_offset of the last answer.")]
Limit = Annotated[
    int, Field(ge=1, le=100, description="At most so many, up to 100; fewer where they are long.")
]
Source = Annotated[str, Field(max_length=MOST_SOURCE)]
Dimension = Annotated[int, Field(ge=0, le=2**40)]
Shape = Annotated[list[Dimension], Field(max_length=16)]


class Filled(BaseModel):
    """An input that is made for the run; random is a standard normal, 0 to 99 of integers."""

    model_config = ConfigDict(extra="forbid")
    fill: Literal["random", "zeros", "ones", "arange"]
    shape: Shape
    dtype: str = Field(description="float16, float32, bfloat16, int32, ...")
    seed: int = Field(default=0, ge=0, le=2**31)


class Argument(BaseModel):
    """One argument of the kernel: exactly one of in, out, scalar, bytes, workspace, list, same, null."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    in_: str | Filled | None = Field(
        default=None, alias="in", description="A .npy or .bin file, or how to fill one."
    )
    out: str | None = Field(default=None, description="A name for an output; shape and dtype go with it.")
    shape: Shape | None = None
    dtype: str | None = None
    from_: str | None = Field(default=None, alias="from", description="A file that an output holds before.")
    scalar: str | None = Field(default=None, description="Its type, as uint32; value goes with it.")
    value: bool | int | float | None = None
    bytes_: str | None = Field(
        default=None, alias="bytes", description="A file with a struct, as tiling data."
    )
    workspace: Annotated[int, Field(ge=0, le=2**34)] | None = Field(default=None, description="Bytes.")
    null: bool | None = None
    same: int | None = Field(default=None, description="The number of an earlier argument, again.")
    list_: list[Argument] | None = Field(
        default=None, alias="list", description="A list of tensors as one argument."
    )


class BareLaunch(BaseModel):
    """How a bare kernel is launched. What an operator package's build would give is optional."""

    model_config = ConfigDict(extra="forbid")
    block_dim: int = Field(default=1, ge=1, le=65535, description="Blocks, 1 to 65535; 1 unless given.")
    args: Annotated[list[Argument], Field(max_length=256)]
    expect: dict[str, str] = Field(default={}, description="Golden .npy or .bin files by an output's name.")
    reference: dict[str, str] = Field(
        default={},
        description="Expressions by an output's name, of the kernel's parameters; reductions keep their "
        "dimension, as in x / sqrt(mean(x*x, -1) + eps) * w.",
    )
    rtol: float = 1e-3
    atol: float = 1e-3
    tiling_key: int | None = None
    template: list[str | int | bool] | None = None
    kernel_type: str | None = None
    tiling_header: str | None = None
    tiling_struct: str | None = None
    dtypes: dict[str, str] | None = None
    formats: dict[str, str] | None = None

    def as_file(self) -> dict[str, Any]:
        """The object of a LAUNCH.json."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude_defaults=False)
