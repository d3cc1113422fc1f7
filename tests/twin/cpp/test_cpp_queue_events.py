"""The flags of a queue's buffers have event ids too: who sets one of them by its number sets it twice."""

from __future__ import annotations

import pytest

QUEUE = (
    "TPipe pipe; TQue<TPosition::VECIN, 2> queue; pipe.InitBuffer(queue, 2, 256);"
    " auto tensor = queue.AllocTensor<float>(); Duplicate(tensor, 0.0f, 64);"
)
FULL = f"{QUEUE} queue.EnQue(tensor);"
END = "tensor = queue.DeQue<float>(); queue.FreeTensor(tensor);"
BOTH = "SetFlag<HardEvent::{0}>({1}); WaitFlag<HardEvent::{0}>({1});"
IDS = "TEventID id = pipe.{}EventID<HardEvent::MTE2_V>(); " + BOTH.format("MTE2_V", "id")
CASES = [  # what the kernel does, whether it meets the flag of a buffer
    (f"{FULL} {BOTH.format('MTE2_V', 0)} {END}", True),
    (f"{FULL} {BOTH.format('MTE2_V', 1)} {END}", False),
    (f"{FULL} {BOTH.format('V_MTE2', 0)} {END}", False),
    (f"{FULL} {IDS.format('Fetch')} {END}", False),
    (f"{FULL} {IDS.format('Alloc')} {END}", False),
    (f"{FULL} {END} {BOTH.format('MTE2_V', 0)}", False),
    (f"{FULL} {END} {BOTH.format('V_MTE2', 0)}", True),
    (f"{FULL} {END} pipe.Reset(); {BOTH.format('V_MTE2', 0)}", False),
    (f"{QUEUE} {BOTH.format('MTE2_V', 0)} queue.EnQue(tensor); {END}", False),
]


@pytest.fixture(scope="module")
def on_vector(compile_kernel):
    switch = "\n".join(f"if (tiling.size[0] == {i}) {{ {text} }}" for i, (text, _) in enumerate(CASES))
    return compile_kernel(switch, sizes=1, kind=(0, 1, "false"))


@pytest.mark.parametrize("index", range(len(CASES)))
def test_a_flag_by_its_number_meets_that_of_a_buffer(on_vector, index: int) -> None:
    found = [item for item in on_vector.run([], [], (index,)).result.hazards if item.code == "event-misuse"]
    assert bool(found) == CASES[index][1], found
    assert all("the flag of a queue's buffer" in item.message for item in found)
