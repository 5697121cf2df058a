"""Checks the dependency rules between modules (ARCHITECTURE.md), and that third-party headers stay
out of our headers."""
import pathlib
import re
import sys

ALLOWED = {
    "base": set(),
    "base/process": {"base"},
    "storage": {"base"},
    "storage/s3": {"base", "storage"},
    "data": {"base", "storage"},
    "comm": {"base"},
    "plan": {"base"},
    "optim": {"base"},
    "embedding": {"base", "comm", "optim", "plan"},
    "nn": {"base"},
    "model": {"base", "nn"},
    "checkpoint": {"base", "storage"},
    "cuda": {"base", "embedding", "model", "nn", "optim", "plan"},
    "train": {"base", "cuda", "data", "comm", "plan", "optim", "embedding", "nn", "model", "checkpoint",
              "storage", "train/observe"},
    "train/observe": {"base"},
    "roofline": {"base", "comm", "data", "nn", "model", "train"},
    "launch": {"base", "base/process"},
    "capi": {"base", "comm", "checkpoint", "data", "storage", "storage/s3", "train/observe"},
    # The job system and the trainer share only cli and the launch contract.
    "cluster/core": {"base"},
    "cluster/spec": {"base", "cluster/core"},
    "cluster/record": {"base", "cluster/core", "cluster/spec"},
    "cluster/client": {"base", "cluster/core", "cluster/spec"},
    # The launch contract, for all that run jobs.
    "cluster/contract": {"base", "base/process", "cluster/core"},
    "cluster/local": {"base", "base/process", "cluster/core", "cluster/spec", "cluster/record",
                      "cluster/contract",
                      "cluster/local/store", "cluster/local/supervisor"},
    "cluster/local/store": {"base", "cluster/core", "cluster/spec"},
    "cluster/local/supervisor": {"base", "base/process", "cluster/core", "cluster/spec",
                                 "cluster/contract"},
    "cluster/pod": {"base", "base/process", "cluster/contract"},
    "cluster/simulate": {"base", "cluster/core", "cluster/spec"},
    "cluster/kubernetes": {"base", "base/process", "cluster/core", "cluster/spec", "cluster/record",
                           "cluster/kubernetes/api"},
    "cluster/kubernetes/api": {"base"},
    "cluster/backend": {"base", "cluster/core", "cluster/spec", "cluster/client",
                        "cluster/kubernetes", "cluster/kubernetes/api"},
    "cli": None,  # everything
    "cli/text": {"base", "cluster/spec"},
    "cli/help": {"base", "cli"},
    "cli/machine": {"base", "cuda", "nn", "cli", "cli/text"},
    # The same separation holds for their verbs.
    "cli/train": {"base", "base/process", "data", "comm", "nn", "model", "checkpoint", "train",
                  "train/observe", "roofline", "launch", "storage", "cli", "cli/text"},
    "cli/data": {"base", "base/process", "data", "cli", "cli/text"},
    "cli/storage": {"base", "storage", "cli"},
    "cli/jobs": {"base", "base/process", "cluster/backend", "cluster/pod", "cluster/spec", "cluster/core", "storage", "cli", "cli/text",
                 "cli/cluster"},
    "cli/cluster": {"base", "base/process", "data", "cluster/core", "cluster/spec", "cluster/client",
                    "cluster/backend", "cluster/local", "cluster/local/supervisor",
                    "cluster/simulate", "cluster/record", "cluster/kubernetes",
                    "cluster/kubernetes/api", "cli", "cli/text", "cli/jobs", "cli/machine"},
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
root = pathlib.Path(sys.argv[1])
files = sorted((root / "renzan").rglob("*.h")) + sorted((root / "renzan").rglob("*.cc"))
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
            allowed = ALLOWED[module]
            if allowed is not None and included not in allowed and not test_only:
                errors.append(f"{where}: {module} must not include {included}; see ARCHITECTURE.md")
        if theirs and path.suffix == ".h" and ("." in theirs[1] or "/" in theirs[1]):
            posix = theirs[1].startswith("sys/")
            if theirs[1] not in HEADERS and not posix and not test_only:
                errors.append(f"{where}: third-party <{theirs[1]}> in a header; use a .cc file")
print("\n".join(errors) or f"{len(files)} files follow the dependency rules")
sys.exit(bool(errors))
