"""The texts that compressed rows differ from. They are part of what is stored, so they are never changed: a
new one is another name and a step of its own."""

from __future__ import annotations

COMMON = (
    '"category:elementwise": 1.0, "category:softmax": 1.0, "dtype:bfloat16": 1.0, "dtype:float16": 1.0, '
    '"dtype:float32": 1.0, "inputs": 1.6094379124341003, "inputs": 1.0986122886681096, "kind:matmul": '
    '0.6931471805599453, "kind:pointwise": 1.3862943611198906, "kind:reduction": 0.6931471805599453, '
    '"log_elements": 2.396578428466209, "log_last_dim": 1.4965784284662087, "op:_softmax": '
    '0.6931471805599453, "op:add": 0.6931471805599453, "op:mul": 1.0986122886681096, "op:sum": '
    '0.6931471805599453, "outputs": 0.6931471805599453, "rank:2": 0.5}{"family": "rowwise", "move": '
    '"rowwise.tile"}{"source_id": "", "strategy": {"descriptor": {"algorithm": 0, "memory": 0, '
    '"parallelism": 0}, "family": "rowwise", "move": "", "notes": ["Tile of elements, 2 buffer(s) a '
    'queue."], "settings": [["at_once", 0], ["buffers", 2], ["bypass_l2", false], ["columns", 0], '
    '["cores", 0], ["eager_rounding", false], ["form", "stream"], ["keep_columns", false], ["online", '
    'true], ["reduction", "block"], ["rows", 64], ["spread", "rows"], ["stagger", true], ["tile", 4096], '
    '["whole", false]], "version": 2}}["start:{"task_id": "", "source_id": "", "verifier": "twin 0.1.0", '
    '"gates": [{"gate": "audit", "status": "failed", "code": "", "feedback": "", "seconds": 0.0, '
    '"hazards": []}, {"gate": "audit", "status": "passed", "code": "", "feedback": "", "seconds": 0.1, '
    '"hazards": []}, {"gate": "compile", "status": "passed", "code": "", "feedback": "", "seconds": 0.1, '
    '"hazards": []}, {"gate": "correctness", "status": "passed", "code": "", "feedback": "", "seconds": '
    '1.1, "hazards": []}, {"gate": "latency", "status": "passed", "code": "", "feedback": "", "seconds": '
    '0.02, "hazards": []}], "latency": {"us": 1.1, "source": "modelled", "chip": "ascend910b1", '
    '"block_dim": 48, "pipes": [["S", 1.1], ["V", 1.1], ["MTE2", 1.1], ["MTE3", 1.1]], "bottleneck": '
    '"V-bound: 83 % busy, idle 10 % waiting for MTE2; MTE2-bound: 91 % busy, idle 8 % waiting for the '
    'scalar unit to issue; V idle 30 % waiting for copies of 11.4 KB, below the efficient 16 KB.", '
    '"roofline_us": 1.1, "baseline_us": 1.1}, "shapes": [[["s0", 1], ["s1", 1]], [["s0", 11], ["s1", '
    '17]], [["s0", 64], ["s1", 128]], [["s0", 241], ["s1", 457]]], "draw": "", "replayed": false, '
    '"confinement": "files, network and processes", "full_size": "chosen slices (s0 64 of 512 in 64 '
    'places)"}'
)
"""What short texts are made of: a dictionary makes them half as long. It is part of what is written, so it is
never changed."""
VERDICTS = COMMON + (
    '", "full_size": "chosen slices (s0 64 of 512 in 64 places)", "said": {"full_size": {"say": "chosen '
    'slices ({places})", "with": {"places": {"say": "{name} {chosen} of {size} in {count} places", "with": '
    '{"name": "s0", "chosen": 64, "size": 512, "count": 64}}}}}}"shapes": [[["s0", 1], ["s1", 1]], [["s0", '
    '4], ["s1", 8]], [["s0", 64], ["s1", 2]], [["s0", 64], ["s1", 128]], [["s0", 255], ["s1", 497]], '
    '[["s0", 128], ["s1", 256]], [["s0", 26], ["s1", 32000]]], "draw": "", "replayed": false, '
    '"confinement": "files, network and processes", "full_size": ""gates": [{"gate": "audit", "status": '
    '"passed", "code": "", "feedback": "", "seconds": 0.1, "hazards": [], "deviation": null}, {"gate": '
    '"compile", "status": "passed", "code": "", "feedback": "", "seconds": 0.1, "hazards": [], '
    '"deviation": null}, {"gate": "correctness", "status": "passed", "code": "", "feedback": "", '
    '"seconds": 1.1, "hazards": [], "deviation": {"largest": 0.5, "relative": 1.1e-07}}, {"gate": '
    '"latency", "status": "passed", "code": "", "feedback": "", "seconds": 0.02, "hazards": [], '
    '"deviation": null}], "latency": {"us": 1.1, "source": "modelled", "chip": "ascend910b1", "block_dim": '
    '48, "pipes": [["S", 1.1], ["V", 1.1], ["MTE2", 1.1], ["MTE3", 1.1]], "bottleneck": "MTE2-bound: 91 % '
    'busy, idle 8 % waiting for the scalar unit to issue; V idle 30 % waiting for MTE2.", "roofline_us": '
    '1.1, "baseline_us": 1.1, "lines": [{"pipe": "V", "file": "op_kernel.cpp", "line": 96, "calls": 55, '
    '"us": 6.1}, {"pipe": "MTE2", "file": "op_kernel.cpp", "line": 70, "calls": 55, "us": 6.1}, {"pipe": '
    '"MTE3", "file": "op_kernel.cpp", "line": 112, "calls": 55, "us": 6.1}], "balance": 0.9, "said": '
    '{"bottleneck": {"say": "{facts}.", "with": {"facts": {"say": "{facts}; {fact}", "with": {"facts": '
    '{"say": "{pipe}-bound: {busy} % busy, idle {idle} % waiting for {cause}", "with": {"pipe": "MTE2", '
    '"busy": 91, "idle": 8, "cause": {"say": "copies of {size} KB, below the efficient 16 KB", "with": '
    '{"size": "11.4"}}, "cause": {"say": "the scalar unit to issue", "with": {}}}}, "fact": {"say": '
    '"{pipe} idle {idle} % waiting for {cause}", "with": {"pipe": "V", "idle": 30, "cause": {"say": '
    '"MTE2", "with": {}}}}}}}}}}, "shapes": [[["s0", 1], ["s1", 1]], [["s0", '
)
"""What verdicts are made of; never changed either."""
