"""Mock of bisheng: it checks the options, looks for a word that stands for a mistake, compiles nothing."""

import os
import sys  # and nothing that takes longer to import: it is started hundreds of times

arguments = sys.argv[1:]
mock = os.environ.get("ASCEND_MOCK", "").split()
for option in ("-xasc", "-std=c++17", "--npu-arch=dav-2201", "-fPIC"):
    if option not in arguments:
        print(f"clang: error: this mock wants {option}", file=sys.stderr)
        sys.exit(1)
assert os.environ["ASCEND_HOME_PATH"]
if "broken-compiler" in mock:
    print("bisheng: error while loading shared libraries: libascend_hal.so", file=sys.stderr)
    sys.exit(127)
sources = [word for word in arguments if word.endswith(".cpp")]
target = arguments[arguments.index("-o") + 1]
assert ("-c" in arguments) == target.endswith(".o")
for source in sources:
    with open(source, encoding="utf-8") as file:  # noqa: PTH123
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if "OnlyTheTwinKnows" in line or ("refuses" in mock and "__global__" in line and "probe" not in line):
            column = line.find("OnlyTheTwinKnows") + 1 or 1
            print(
                f"{source}:{number}:{column}: error: use of undeclared identifier\n1 error", file=sys.stderr
            )
            sys.exit(1)
with open(target, "wb") as file:  # noqa: PTH123
    file.write(b"a mock's object")
