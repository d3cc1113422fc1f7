"""Mock of a Python with torch_npu: answers what a first run asks, and stands for the NPU by numpy.

It reads the request that cann_run.py gets, writes the outputs and the profiler's tables in their formats,
and measures nothing: every figure here is made up. To compute, it becomes the ``python-with-numpy`` beside
it.
"""

import json
import os
import re
import sys
from pathlib import Path

mock = os.environ.get("ASCEND_MOCK", "").split()
BLOCKS = "Block Dim" if "old-columns" in mock else "Block Num"
HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),"
    f"Duration(us),Wait Time(us),{BLOCKS},Mix {BLOCKS},HF32 Eligible,Input Shapes,Input Data Types,"
    "Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID,aicore_time(us),"
    "aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),aic_scalar_ratio,aic_mte1_time(us),"
    "aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),aic_fixpipe_ratio,"
    "aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,aiv_scalar_time(us),"
    "aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)
CUBE = "8.0,296000,3.0,0.375,0.5,0.06,1.0,0.125,2.0,0.25,1.5,0.19,0.01"
NO_CUBE = ",".join(["0"] * 13)
VECTOR = "7.0,259000,1.0,0.14,0.4,0.06,2.5,0.36,1.2,0.17,0.02,0"
SHAPES = 'NO,"""130,256""",FLOAT,ND,"""130,256""",FLOAT,ND,N/A'
STEPS = (
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing\n"
)


def versions():
    torch_npu = next((word[4:] for word in mock if word.startswith("npu=")), "2.9.0.post2")
    torch = next(
        (word[6:] for word in mock if word.startswith("torch=")), re.sub(r"\.post\d+", "", torch_npu)
    )
    devices = 0 if "no-device" in mock else 2
    chip = "Ascend910Z9" if "unknown-chip" in mock else "Ascend910B3"
    name = chip if devices else ""
    return {
        "python": "3.11.9",
        "torch": f"{torch}+cpu",
        "torch_npu": torch_npu,
        "devices": devices,
        "name": name,
    }


def launch(request):
    import numpy as np

    inputs = [np.fromfile(path, np.float32) for path, _ in request["inputs"]]
    if len(inputs) == 2:
        result = inputs[0] + inputs[1]
    else:
        weight = inputs[1].reshape(len(inputs[2]), -1)
        result = np.maximum(inputs[0].reshape(-1, weight.shape[1]) @ weight.T + inputs[2], 0) * inputs[2]
    result = result.astype(np.float32).ravel()
    if "wrong" in mock:
        result[1000] += 1
    Path(request["outputs"][0][0]).write_bytes(result.tobytes())


def record(request, folder):
    mixed = len(request["inputs"]) == 3
    name = "first_linear_kernel_mix_aic" if mixed else "first_add_kernel"
    rows, steps = [HEADER], STEPS
    for step in (3, 4, 5):
        where = "MIX_AIC" if mixed else "AI_VECTOR_CORE"
        task = f"{step},0,4294967295,{step},7,{name},{name},dynamic,{where},1717575960208020.75\t,10.5,0"
        rows.append(f"{task},{'20,40' if mixed else '40,0'},{SHAPES},{CUBE if mixed else NO_CUBE},{VECTOR}")
        steps += f"0,{step},10.5,0,0,0,4.0,14.5,0,0,0.5\n"
    if "foreign" in mock:
        rows.append(rows[-1].replace(name, "aclnnAdd_AddAiCore_Add"))
    output = folder / "host_1_20260101_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    if "no-tables" not in mock:
        (output / "kernel_details.csv").write_text("\n".join(rows) + "\n")
        (output / "step_trace_time.csv").write_text(steps)


def main(arguments):
    if arguments[0] == "-c":
        if "no-torch_npu" in mock:
            sys.exit("ModuleNotFoundError: No module named 'torch_npu'")
        if "torch_npu" in arguments[1]:
            print("[W] a line of the package's own")
            print(json.dumps(versions()))
        return
    assert arguments[0].endswith("cann_run.py"), arguments
    request = json.loads(Path(arguments[1]).read_text())
    assert request["cores"] == 40  # a 910B3
    if "crash" in mock:
        sys.exit("RuntimeError: ACL stream synchronize failed, error code:507015")
    if arguments[2:3] == ["--profile"]:
        record(request, Path(arguments[3]))
    elif sys.argv[0] != "-c":
        program = str(Path(__file__).with_name("python-with-numpy"))
        os.execv(program, [program, "-c", Path(__file__).read_text(), *arguments])
    else:
        launch(request)
    Path(request["result"]).write_text(json.dumps({"error": "", "hazards": []}))


if __name__ == "__main__":
    main(sys.argv[1:])
