"""Calls each documented function of torch.cuda in a session with two devices, and compares what it does with the table of
docs/reference/torch-cuda.md, which is the first argument. With --update it writes the column of the PyTorch at hand."""
import importlib
import pkgutil
import re
import sys
import types
import warnings

import torch

import cuda_checks
import cuda_module_checks  # noqa: F401, which adds its checks

warnings.simplefilter("ignore")
VERSIONS = ("1.13", "2.6", "2.14")
HEAD = "| functions | %s | |\n|---|%s---|\n" % (" | ".join(VERSIONS), "---|" * len(VERSIONS))
PRIVATE = ("jiterator._create_jit_fn", "jiterator._create_multi_output_jit_fn", "memory._record_memory_history", "memory._snapshot",
           "memory._dump_snapshot", "OutOfMemoryError")  # documented all the same


def group(name):
    """Types of tensors and storages are one line of the table each."""
    for kind in ("Tensor", "Storage"):
        if name.endswith(kind):
            return "FloatTensor and the other tensor types" if kind == "Tensor" else "FloatStorage and the other storage types"
    return name


def documented():
    """The public names of torch.cuda and its modules, each once."""
    modules = {"": torch.cuda}
    for found in pkgutil.iter_modules(torch.cuda.__path__):
        if not found.name.startswith("_"):
            modules[found.name + "."] = importlib.import_module("torch.cuda." + found.name)
    names = {}
    for prefix, module in modules.items():
        own = [name for name in dir(module) if not name.startswith("_") and getattr(getattr(module, name), "__module__", "").startswith(module.__name__)]
        for name in list(getattr(module, "__all__", ())) + own:
            thing = getattr(module, name, None)
            if isinstance(thing, types.ModuleType) or prefix and getattr(torch.cuda, name, self_) is thing:
                continue
            names.setdefault(group(prefix + name))
    for name in PRIVATE:
        holder, _, last = name.rpartition(".")
        if hasattr(modules[holder + "." if holder else ""], last):
            names.setdefault(name)
    return list(names)


self_ = object()


def outcome(name):
    """works, error or n/a, as the check of a function finds it."""
    check = cuda_checks.CHECKS.get(name)
    if check is None:
        return "no check"
    try:
        return check() or "works"
    except Exception as error:
        return "fails: %s: %s" % (type(error).__name__, error)


def rows(text):
    """{function: ([outcome by version], remark)} of the table in a page, whose lines have all functions with the same outcomes."""
    found = {}
    for line in text[text.index("| functions |"):].splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("| `"):
            found.update({name: (parts[1:1 + len(VERSIONS)], parts[-1]) for name in re.findall("`([^`]+)`", parts[0])})
    return found


def lines(table):
    """The lines of the table for {function: ([outcome by version], remark)}."""
    alike = {}
    for name in sorted(table, key=order):
        outcomes, remark = table[name]
        alike.setdefault((tuple(outcomes), remark), []).append("`%s`" % name)
    return ["| %s | %s | %s |\n" % (", ".join(names), " | ".join(outcomes), remark) for (outcomes, remark), names in alike.items()]


def main():
    version = re.match(r"\d+\.\d+", torch.__version__).group()
    if version not in VERSIONS:
        print("The table has no column for PyTorch %s." % version)
        return
    with open(sys.argv[1]) as file:
        text = file.read()
    table, column = rows(text), VERSIONS.index(version)
    now = {name: outcome(name) for name in documented()}
    broken = {name: found for name, found in now.items() if found not in ("works", "error", "n/a")}
    if "--update" in sys.argv:
        for name in set(table) | set(now):
            outcomes, _ = table.setdefault(name, (["–"] * len(VERSIONS), ""))
            outcomes[column] = now.get(name, "–")
        table = {name: (outcomes, cuda_checks.REMARKS.get(name, "")) for name, (outcomes, _) in table.items()}
        with open(sys.argv[1], "w") as file:
            file.write(text[:text.index("| function")] + HEAD + "".join(lines(table)))
    for name in sorted(set(table) | set(now)):
        stated, found = table.get(name, (["–"] * len(VERSIONS), ""))[0][column], now.get(name, "–")
        if stated != found:
            broken[name] = "%s; the table says %s" % (found, stated)
    for name, why in broken.items():
        print("torch.cuda.%s: %s" % (name, why))
    counts = {kind: list(now.values()).count(kind) for kind in ("works", "error", "n/a")}
    print("%d functions: %d work, %d raise an error, %d are not applicable" % (len(now), counts["works"], counts["error"], counts["n/a"]))
    sys.exit(1 if broken else 0)


def order(name):
    return ("." in name, name.lower())


if __name__ == "__main__":
    main()
