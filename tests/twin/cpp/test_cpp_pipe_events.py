"""A TPipe on a cube core keeps M_MTE1 ids 0 to 2 for itself, on a vector core none."""

from __future__ import annotations

import pytest

CUBE, VECTOR, MIX = (1, 0, "false"), (0, 1, "false"), (1, 2, "true")
SET, WAIT = "SetFlag<HardEvent::M_MTE1>({});", "WaitFlag<HardEvent::M_MTE1>({});"
BOTH = SET + WAIT
ALLOC = "TEventID id = pipe.AllocEventID<HardEvent::M_MTE1>();"
FETCH = "TEventID id = pipe.FetchEventID<HardEvent::M_MTE1>();"
PIPE = "TPipe pipe;"

CASES = [  # what the kernel does, what the hazard says or ""
    (f"{PIPE} {BOTH.format(0, 0)}", "event id 0, which the TPipe of a cube core has set"),
    (f"{PIPE} {BOTH.format(1, 1)}", "event id 1, which the TPipe of a cube core has set"),
    (f"{PIPE} {BOTH.format(2, 2)}", "event id 2, which the TPipe of a cube core has set"),
    (f"{PIPE} {BOTH.format(3, 3)}", ""),
    (BOTH.format(0, 0), ""),
    (f"{PIPE} pipe.Destroy(); {BOTH.format(0, 0)}", ""),
    (f"{PIPE} pipe.DestroyWithoutPipeAll(); {BOTH.format(0, 0)}", ""),
    (f"{PIPE} pipe.Destroy(); pipe.Init(); {BOTH.format(0, 0)}", "which the TPipe of a cube core has set"),
    (f"{PIPE} pipe.Reset(); {BOTH.format(0, 0)}", "which the TPipe of a cube core has set"),
    (f"{{ {PIPE} }} {BOTH.format(0, 0)}", ""),
    (f"{PIPE} {ALLOC} {BOTH.format('id', 'id')} pipe.ReleaseEventID<HardEvent::M_MTE1>(id);", ""),
    (f"{PIPE} {FETCH} {BOTH.format('id', 'id')}", ""),
    (f"{PIPE} {WAIT.format(0)}", "finally waits for M_MTE1 with event id 0"),
    (f"{PIPE} {WAIT.format(0)} {SET.format(0)}", ""),
    (f"{SET.format(0)} {PIPE} {WAIT.format(0)}", "sets M_MTE1 with event id 0 on a cube core"),
    (f"{PIPE} SetFlag<HardEvent::MTE1_MTE2>(0); WaitFlag<HardEvent::MTE1_MTE2>(0);", ""),
]


def _switch() -> str:
    return "\n".join(f"if (tiling.size[0] == {i}) {{ {text} }}" for i, (text, _) in enumerate(CASES))


@pytest.fixture(scope="module")
def on_cube(compile_kernel):
    return compile_kernel(_switch(), sizes=1, kind=CUBE)


@pytest.mark.parametrize("index", range(len(CASES)))
def test_on_a_cube_core(on_cube, index: int) -> None:
    found = [
        hazard.message
        for hazard in on_cube.run([], [], (index,)).result.hazards
        if hazard.code == "event-misuse"
    ]
    wanted = CASES[index][1]
    assert all(wanted in message for message in found), found
    assert bool(found) == bool(wanted)


@pytest.mark.parametrize("index", [0, 1, 2, 8])
def test_a_vector_core_has_all_ids(compile_kernel, index: int) -> None:
    on_vector = compile_kernel(_switch(), sizes=1, kind=VECTOR)
    assert "event-misuse" not in on_vector.run([], [], (index,)).codes()


@pytest.mark.parametrize(
    ("pipe", "codes"),
    [("TPipe pipe;", {"event-misuse"}), ("if ASCEND_IS_AIV { TPipe pipe; }", set())],
)
def test_in_a_mixed_kernel_only_the_cube_cores_lose_ids(compile_kernel, pipe: str, codes: set[str]) -> None:
    mixed = compile_kernel(f"{pipe} if ASCEND_IS_AIC {{ {BOTH.format(0, 0)} }}", kind=MIX)
    assert mixed.run([], []).codes() == codes


def test_the_first_id_that_is_handed_out_is_the_fourth(compile_kernel) -> None:
    body = f"{PIPE} {ALLOC} if (id != 3) {{ SetFlag<HardEvent::M_MTE1>(0); }}"
    assert compile_kernel(body, kind=CUBE).run([], []).codes() == set()
    assert compile_kernel(body, kind=VECTOR).run([], []).codes() == {"wrong-core"}  # it got another one
