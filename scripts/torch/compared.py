"""compared.py --list [CASE...] lists the cases of published.json: name, suite, target, option. compared.py CASE OPTION FIGURE...
prints the published figures of a case, those of a session in bytes, and their difference."""
import json
import os
import sys

CASES = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.json")))
UNITS = {"B": 1, "MiB": 1 << 20, "GiB": 1 << 30, "GB": 10 ** 9}

if sys.argv[1] == "--list":
    for case in CASES:
        if len(sys.argv) == 2 or case["name"] in sys.argv[2:]:
            for option in [""] + (["--as-2.1"] if case["measured"].endswith("2.1.0.dev20230623") else []):
                print(case["name"], case["suite"], case["target"], option)
else:
    case = next(case for case in CASES if case["name"] == sys.argv[1])
    for what, published, bytes in zip(case["what"], case["published"], sys.argv[3:]):
        if published:
            here = int(bytes) / UNITS[case["unit"]]
            print("%-22s %-22s %14s %14s %-3s %+.2f %%" % (" ".join(sys.argv[1:3]), what, published, ("%.4f" % here).rstrip("0").rstrip("."), case["unit"],
                                                       100 * (here / published - 1)))
