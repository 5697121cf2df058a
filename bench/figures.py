"""Formatting of benchmark figures and a description of the machine."""
import os
import statistics
import sys
import time


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def spread(values, form, scale=1):
    """"1.52 (1.40 to 1.71)": the median and the range; one value stands alone."""
    low, middle, high = (format(v * scale, form) for v in
                         (min(values), statistics.median(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def busy_ticks():
    """Ticks of all cores since boot: busy ones, and all."""
    with open("/proc/stat") as file:
        numbers = [int(x) for x in file.readline().split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)  # idle, waiting for a disk


def busy_share(seconds):
    """The share of all cores in use now."""
    busy, total = busy_ticks()
    time.sleep(seconds)
    later_busy, later_total = busy_ticks()
    return (later_busy - busy) / max(1, later_total - total)


def machine_facts():
    """What determines how fast the machine is: {"cpu": "...", "cores": 2, "units": ["avx512f"]}."""
    with open("/proc/cpuinfo") as file:
        lines = file.read().splitlines()
    def first(name):
        return next((line.split(":")[1].strip() for line in lines if line.startswith(name)), "?")
    flags = first("flags").split()
    return {"cpu": first("model name"), "cores": os.cpu_count(),
            "units": [u for u in ("avx512f", "avx512_bf16", "amx_bf16") if u in flags]}


def units(facts):
    return " ".join(facts["units"]) or "no AVX-512"


def machine(busy):
    facts = machine_facts()
    return f"{facts['cpu']}; {facts['cores']} cores; {busy:.0%} busy before the start"
