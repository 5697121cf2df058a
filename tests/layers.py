"""Checks the dependency rules between modules (ARCHITECTURE.md), that third-party headers stay out
of our headers, and that no Python module imports itself through others."""
import ast
import graphlib
import pathlib
import re
import sys

# From the bottom up: a module may use only those listed above it that it names.
ALLOWED = {
    "base": set(),
    "base/process": {"base"},
    "base/tls": {"base"},
    "base/http": {"base", "base/tls"},
    "tensor": {"base"},
    "storage": {"base"},
    "storage/s3": {"base", "base/http", "storage"},
    "data": {"base", "storage"},
    "comm": {"base", "tensor"},
    "plan": {"base", "tensor"},
    "optim": {"base", "tensor"},
    "checkpoint": {"base", "storage", "tensor"},
    "embedding": {"base", "checkpoint", "comm", "optim", "plan", "tensor"},
    "nn": {"base", "tensor"},
    "model": {"base", "nn", "tensor"},
    "cuda": {"base", "model", "nn", "optim", "tensor"},
    # The trainer, from a run's description to the run itself.
    "observe": {"base"},
    "config": {"base", "data", "model", "optim", "plan", "storage", "tensor"},
    "run_spec": {"base", "config", "data", "model", "optim", "plan", "storage", "tensor"},
    "quality": {"base", "comm", "config", "embedding", "model"},
    "dense": {"base", "checkpoint", "comm", "nn", "run_spec", "tensor"},
    "planning": {"base", "comm", "config", "cuda", "data", "dense", "embedding", "model", "plan",
                 "run_spec", "storage", "tensor"},
    "state": {"base", "comm", "embedding", "model", "optim", "plan", "quality", "run_spec",
              "tensor"},
    "step": {"base", "comm", "cuda", "data", "dense", "embedding", "model", "nn", "optim",
             "planning", "run_spec", "state", "tensor"},
    "infer": {"base", "checkpoint", "comm", "data", "dense", "embedding", "model", "run_spec", "step",
              "tensor"},
    "saving": {"base", "checkpoint", "comm", "config", "data", "dense", "embedding", "nn", "observe",
               "optim", "quality", "state", "storage"},
    "run": {"base", "checkpoint", "comm", "config", "cuda", "data", "embedding", "infer", "model",
            "nn", "observe", "planning", "quality", "run_spec", "saving", "state", "step",
            "storage"},
    "roofline": {"base", "comm", "data", "dense", "embedding", "nn", "plan", "state", "tensor"},
    "launch": {"base", "base/process"},
    "capi": {"base", "comm", "checkpoint", "data", "storage", "storage/s3", "observe", "tensor"},
    # The job system and the trainer share only cli and the launch contract.
    "cluster/core": {"base"},
    "cluster/spec": {"base", "cluster/core"},
    "cluster/record": {"base", "cluster/core", "cluster/spec"},
    "cluster/client": {"base", "base/http"},
    # The launch contract, for everything that runs jobs.
    "cluster/contract": {"base", "base/process", "cluster/core"},
    "cluster/local/store": {"base", "cluster/core", "cluster/spec"},
    "cluster/local/supervisor": {"base", "base/process", "cluster/core", "cluster/spec",
                                 "cluster/contract"},
    "cluster/local": {"base", "base/process", "base/tls", "base/http", "cluster/core",
                      "cluster/spec", "cluster/record", "cluster/contract",
                      "cluster/local/store", "cluster/local/supervisor"},
    "cluster/pod": {"base", "base/process", "cluster/contract"},
    "cluster/simulate": {"base", "cluster/core"},
    "cluster/kubernetes/api": {"base", "base/http", "base/process"},
    "cluster/kubernetes": {"base", "base/process", "base/tls", "base/http", "cluster/core", "cluster/spec", "cluster/record",
                           "cluster/kubernetes/api"},
    "cluster/backend": {"base", "cluster/core", "cluster/spec", "cluster/client",
                        "cluster/kubernetes", "cluster/kubernetes/api"},
    # The program is the trainer; it loads the job system.
    "cli": {"base", "base/process", "nn", "cli/help", "cli/job_system", "cli/machine",
            "cli/storage"},
    "cli/text": {"base"},
    "cli/help": {"base", "cli/text"},
    "cli/job_system": {"base", "cli", "cli/machine"},
    "cli/machine": {"base", "base/http", "base/process", "cuda", "nn", "storage", "storage/s3", "cli",
                    "cli/job_system", "cli/text"},
    # The same separation holds for their verbs.
    "cli/train": {"base", "base/process", "data", "comm", "nn", "model", "checkpoint", "config",
                  "infer", "observe", "planning", "run", "run_spec", "saving", "step", "roofline",
                  "launch", "cli", "cli/text"},
    "cli/data": {"base", "data", "cli", "cli/text"},
    "cli/storage": {"base", "storage", "cli"},
    "cli/jobs": {"base", "base/process", "cluster/backend", "cluster/pod", "cluster/spec", "cluster/core", "storage", "cli", "cli/text",
                 "cli/cluster"},
    "cli/cluster": {"base", "base/process", "data", "cluster/core", "cluster/spec", "cluster/client",
                    "cluster/backend", "cluster/local", "cluster/local/supervisor",
                    "cluster/simulate", "cluster/record", "cluster/kubernetes", "cli", "cli/text",
                    "cli/jobs", "cli/machine"},
}
# What a header may include besides ours, POSIX and the standard library.
HEADERS = {"fmt/format.h", "nlohmann/json_fwd.hpp",
           "stddef.h", "stdint.h"}  # of the C interface


def module_of(parts):
    """The module of a path below renzan/: its longest prefix in ALLOWED."""
    for length in range(len(parts) - 1, 0, -1):
        if "/".join(parts[:length]) in ALLOWED:
            return "/".join(parts[:length])
    return parts[0]


errors = []
above = set()
for name, allowed in ALLOWED.items():
    # The verbs of the command line may start each other.
    if not name.startswith("cli"):
        errors += [f"tests/layers.py: {name} may use {other}, which is not above it"
                   for other in sorted((allowed or set()) - above)]
    above.add(name)
root = pathlib.Path(sys.argv[1])
used = set()  # (module, module that it includes)
files = sorted(path for kind in ("*.h", "*.cc", "*.cuh", "*.cu") for path in (root / "renzan").rglob(kind))
assert files, "no sources found"
for path in files:
    parts = path.relative_to(root / "renzan").parts
    module = module_of(parts)
    if module not in ALLOWED:
        errors.append(f"{path}: unknown module {module}; add it to ALLOWED in tests/layers.py")
        continue
    test_only = path.name.endswith(("_test.cc", "_for_test.h", "testing.h"))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        ours = re.match(r'#include "renzan/([^"]+)"', line)
        included = ours and module_of(ours[1].split("/"))
        theirs = re.match(r"#include <([^>]+)>", line)
        where = f"{path.relative_to(root)}:{number}"
        if ours and included != module:
            if not test_only:
                used.add((module, included))
            if included not in ALLOWED[module] and not test_only:
                errors.append(f"{where}: {module} must not include {included}; see ARCHITECTURE.md")
        if theirs and path.suffix == ".h" and ("." in theirs[1] or "/" in theirs[1]):
            posix = theirs[1].startswith("sys/")
            if theirs[1] not in HEADERS and not posix and not test_only:
                errors.append(f"{where}: third-party <{theirs[1]}> in a header; use a .cc file")
errors += [f"tests/layers.py: {name} may use {other}, but no file does: remove it from ALLOWED"
           for name, allowed in ALLOWED.items() for other in sorted(allowed)
           if (name, other) not in used]


def imports_of(path, modules):
    """The modules of ours that a Python file imports, anywhere in it except for type checkers."""
    tree = ast.parse(path.read_text())
    for_checkers = {node for block in ast.walk(tree)
                    if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
                    for statement in block.body for node in ast.walk(statement)}
    for node in ast.walk(tree):
        if node in for_checkers:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                if whole in modules or node.module in modules:
                    yield whole if whole in modules else node.module


package = root / "python"
modules = {".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
           for path in sorted((package / "renzan").rglob("*.py"))}
assert modules, "no Python modules found"
try:
    graphlib.TopologicalSorter({name: set(imports_of(path, modules))
                                for name, path in modules.items()}).prepare()
except graphlib.CycleError as cycle:
    errors.append("Python modules import each other: " + ", which imports ".join(reversed(cycle.args[1])))
print("\n".join(errors) or f"{len(files) + len(modules)} files follow the dependency rules")
sys.exit(bool(errors))
