"""What bench/pytorch measures: one function for each section, which yields the lines of its table.
With `quick` it only tries that everything works."""
import os
import statistics
import subprocess
import sys
import tempfile
import time

from commands import RENZAN, ROOT, run
from figures import say, spread
from launch import WORKERS, over_gloo, over_mpi
from pytorch_hosts import ADDRESS, hosts

STEP_WAYS = {"ddp": "DDP", "ddp:4": "DDP, 4 micro-batches each", "virtual:8": "VirtualStep, 8",
             "virtual:2": "VirtualStep, 2"}


def ratios(ours, base):
    return [a / b for a, b in zip(ours, base)]


def steps(python, task, ways, quick, *, rounds=9, seconds=1.0, more=(), **placement):
    """{way: seconds of a step, one for each round}."""
    rounds, seconds = (1, 0.01) if quick else (rounds, seconds)
    return over_gloo([python, WORKERS / "steps.py", task, *ways, "--rounds", rounds, "--seconds",
                      seconds, *more], **placement)["seconds"]


def step(python, quick):
    """training steps on two workers with one thread each, by virtual workers. DDP with the same
    micro-batches accumulates their gradients (no_sync)."""
    yield "| model | step of | ms | of DDP | of DDP with as many micro-batches |"
    yield "| --- | --- | --- | --- | --- |"
    for task in ("digits", "transformer", "ranking", "resnet50", "transformer25m"):
        measured = steps(python, task, STEP_WAYS, quick,
                         rounds=5 if task in ("resnet50", "transformer25m") else 9)
        for way, seconds in measured.items():
            same = measured["ddp:4" if way in ("ddp:4", "virtual:8") else "ddp"]
            yield (f"| {task} | {STEP_WAYS[way]} | {1e3 * statistics.median(seconds):.2f} | "
                   f"{spread(ratios(seconds, measured['ddp']), '.2f')} | "
                   f"{spread(ratios(seconds, same), '.2f')} |")
        say(f"{task}: " + ", ".join(f"{way} {1e3 * statistics.median(s):.2f} ms"
                                    for way, s in measured.items()))


def allreduce(python, quick):
    """sums of float32 over two workers, in place, against torch.distributed's over Gloo and
    against MPI_Allreduce."""
    sizes = [size << 20 for size in ((1,) if quick else (1, 4, 16, 64, 256))]
    flags = ["--rounds", 1 if quick else 9, "--seconds", 0.01 if quick else 0.3]
    yield "| backend | MiB | Renzan, ms | the peer, ms | of the peer |"
    yield "| --- | --- | --- | --- | --- |"
    for backend, launch in (("gloo", over_gloo), ("mpi", over_mpi)):
        measured = launch([python, WORKERS / "all_reduce.py", backend, *sizes, *flags])
        for size, sides in measured["seconds"].items():
            ours, theirs = sides["renzan"], sides["peer"]
            yield (f"| {backend} ({measured['peer']}) | {int(size) >> 20} | "
                   f"{1e3 * statistics.median(ours):.2f} | {1e3 * statistics.median(theirs):.2f} | "
                   f"{spread(ratios(ours, theirs), '.2f')} |")


def memory(python, quick):
    """arrays of the size of all gradients (25M parameters), parameter.grad included, and by how many
    of them a process grew at most; the rest of that is the exchange's and the activations'.
    DistributedDataParallel's growth beside it."""
    yield "| workers | virtual workers of each | arrays | ceil(log2 k) + 1 | peak of the process |"
    yield "| --- | --- | --- | --- | --- |"
    for workers in (1, 2, 3):
        for k in (1, 2) if quick else (1, 2, 3, 4, 8, 16):
            held = over_gloo([python, WORKERS / "memory.py", k], workers)
            yield (f"| {workers} | {k} | {held['arrays']} | {(k - 1).bit_length() + 1} | "
                   f"{held['grown']:.2f} |")
        held = over_gloo([python, WORKERS / "memory.py", 0], workers)
        yield f"| {workers} | DistributedDataParallel | | | {held['grown']:.2f} |"


def overlap(python, quick):
    """two hosts (network namespaces) with a shaped network: the exchange within the last backward or
    after it (one bucket), and as bfloat16. The emulated model has 25M parameters and waits 96 ms
    forward and 192 ms backward, split among its virtual workers."""
    ways = {"ddp": "DDP", "virtual:2": "VirtualStep, 2", "virtual:2/one": "VirtualStep, 2, after",
            "virtual:2/bfloat16": "VirtualStep, 2, bfloat16",
            "virtual:8": "VirtualStep, 8", "virtual:8/one": "VirtualStep, 8, after"}
    yield "| network | step of | ms | of DDP | of VirtualStep, 2 |"
    yield "| --- | --- | --- | --- | --- |"
    for rate in ("1gbit", "10gbit"):
        with hosts(2, rate) as on_host:
            if on_host is None:
                yield "skipped: network namespaces need root"
                return
            measured = steps(python, "emulated", ways, quick, rounds=5, seconds=1.0, workers=2,
                             address=ADDRESS, on_host=on_host, more=["--rows", 24])
        for way, seconds in measured.items():
            yield (f"| {rate} | {ways[way]} | {1e3 * statistics.median(seconds):.0f} | "
                   f"{spread(ratios(seconds, measured['ddp']), '.2f')} | "
                   f"{spread(ratios(seconds, measured['virtual:2']), '.2f')} |")


def over_hosts(python, quick):
    """samples/s of one global batch of 96 samples and 12 virtual workers on 1 to 4 hosts (network
    namespaces, 1 Gbit/s and 10 Gbit/s, one worker each, which share this machine's cores), and in
    brackets the share of linear scaling: as many times as fast as one host. The emulated model waits
    12 ms for each sample and has 25M parameters."""
    yield ("| network | hosts | VirtualStep, 12 | VirtualStep, 12, bfloat16 | "
           "DDP with as many micro-batches | DDP |")
    yield "| --- | --- | --- | --- | --- | --- |"
    for rate in ("1gbit", "10gbit"):
        one = None
        for count in (1, 2) if quick else (1, 2, 3, 4):
            with hosts(count, rate) as on_host:
                if on_host is None:
                    yield "skipped: network namespaces need root"
                    return
                ways = ("virtual:12", "virtual:12/bfloat16", f"ddp:{12 // count}", "ddp")
                measured = steps(python, "emulated", ways, quick, rounds=3, seconds=1.0,
                                 workers=count, address=ADDRESS, on_host=on_host)
            rates = [96 / statistics.median(measured[way]) for way in ways]
            one = one or rates
            shares = [r / (first * count) for r, first in zip(rates, one)]
            yield f"| {rate} | {count} | " + " | ".join(
                f"{r:.0f} ({share:.2f})" for r, share in zip(rates, shares)) + " |"


def learning(python, quick):
    """plain PyTorch in one process and VirtualStep (8 virtual workers on 2 workers) from the same
    weights on the same samples, by seed; t is the mean difference over its standard error, of which
    2.78 would be significant at 5% for five seeds. Figures are of samples left out; the ranking model
    learns generated clicks."""
    yield "| task | figure | seeds | plain PyTorch | VirtualStep | difference | t |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    text = ROOT / "../shared/data/tinyshakespeare/input.txt.gz"
    show = lambda values: f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
    with tempfile.TemporaryDirectory() as folder:
        clicks = f"{folder}/clicks"
        run(RENZAN, "data", "synth", "--format", "dataset", "--rows", 200_000, "--output", clicks)
        for task, data, num_steps in (("digits", "", 450), ("ranking", clicks, 300),
                                      ("transformer", text, 600)):
            if task == "transformer" and not text.exists():
                yield f"{task}: skipped, {text} is not there"
                continue
            learned = [over_gloo([python, WORKERS / "learning.py", task, "--seed", seed, "--steps",
                                  5 if quick else num_steps, "--data", data])
                       for seed in range(1, 3 if quick else 6)]
            for figure in learned[0]["plain"]:
                plain, virtual = ([one[way][figure] for one in learned]
                                  for way in ("plain", "virtual"))
                apart = [v - p for v, p in zip(virtual, plain)]
                error = statistics.stdev(apart) / len(apart) ** 0.5
                t = f"{statistics.mean(apart) / error:+.2f}" if error > 0 else "-"
                yield (f"| {task} | {figure} | {len(learned)} | {show(plain)} | {show(virtual)} | "
                       f"{show(apart)} | {t} |")
            say(f"{task}: {learned}")


def tests(python, quick):
    """the tests of the Python package with this PyTorch, the examples' digests among them: on 1 to
    4 workers over Gloo and MPI, with three seeds of kills, stops and resizes, and through a day as
    a job of the local cluster."""
    yield "| test | minutes |"
    yield "| --- | --- |"
    tests_folder = ROOT / "tests/python"
    commands = {name: [python, tests_folder / f"{name}_test.py"] for name in TESTS_OF_TORCH}
    commands["examples"] = [python, tests_folder / "examples_test.py", "--every-placement"]
    for example in ("digits", "shakespeare", "ranking"):
        commands[f"day of {example}"] = ["bash", ROOT / "tests/e2e/pytorch_day_test.sh", RENZAN,
                                         example]
    if quick:
        commands = {"communicator": [python, tests_folder / "communicator_test.py"]}
    environment = {**os.environ, "RENZAN": str(RENZAN),
                   "PYTHON": str(python),
                   "RENZAN_LIBRARY": str(ROOT / "build/release/lib/librenzan.so"),
                   "PYTHONPATH": f"{ROOT}/python:{tests_folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    failed = []
    for name, command in commands.items():
        begin = time.monotonic()
        done = subprocess.run(command, env=environment, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            failed.append(name)
            print(f"{name} ended with {done.returncode}:\n{done.stdout}{done.stderr}",
                  file=sys.stderr, flush=True)
        minutes = f"{(time.monotonic() - begin) / 60:.1f}"
        yield f"| {name} | {minutes}{', failed' if name in failed else ''} |"
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


TESTS_OF_TORCH = ["virtual_step", "state", "process_group", "torch_dataset", "horovod",
                  "horovod_elastic", "horovod_errors", "chainermn", "pytorch_page"]
SECTIONS = {"step": step, "allreduce": allreduce, "memory": memory, "overlap": overlap,
            "hosts": over_hosts, "learning": learning, "tests": tests}
