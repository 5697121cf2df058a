#!/usr/bin/env python3
"""Draws the plots of docs/performance.md and the pages below it, from what bench/performance
measured: Renzan's speed beside PyTorch's, and the time of a step against the sizes that it grows
with, one SVG for each. The same results give the same bytes; the background is transparent and the
colours are legible on white and on black. Needs the Python of `bench/setup-peers plots`.

  plots.py results.json FOLDER
"""
import json
import pathlib
import statistics
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot, ticker

import performance_targets as targets
from performance_tables import CLASS_NAMES

GREY = "#808080"
COLOURS = {"step": "#1f88d0", "step, least time": "#d9620c", "forward and backward": "#0f9b74",
           "lookup": "#c2679a", "sparse update": "#a8850c"}
OTHER_COLOURS = ("#8a73d6", "#d04f4f", "#4fa3a3", "#8f8f3d")
# Axis, and the curves of each plot with their labels.
PLOTS = {
    "batch": ("samples per step", {"batch": ""}),
    "tables": ("tables", {"tables": ""}),
    "rows": ("rows of each table", {"rows": ""}),
    "dim": ("embedding dimension", {"dim": ""}),
    "pooling": ("ids per bag", {"pooling": ""}),
    "workers": ("workers of one thread", {"workers-mpi": "MPI", "workers-gloo": "Gloo"}),
}
CLASS_COLOURS = {"avx512": "#1f88d0", "avx512_bf16": "#0f9b74", "amx": "#d9620c",
                 "other": "#8a73d6"}
SHOWN_SHARE = 0.1  # of a step, at one point at least: what a phase needs to get a line

matplotlib.rcParams.update({
    "svg.hashsalt": "renzan", "svg.fonttype": "none", "font.size": 10, "text.color": GREY,
    "axes.labelcolor": GREY, "axes.edgecolor": GREY, "xtick.color": GREY, "ytick.color": GREY,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "axes.prop_cycle": matplotlib.cycler(color=OTHER_COLOURS)})


def short(number):
    """1,000 as 1k."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)


def seconds_of(run, phase):
    return next((p["seconds"] for p in run["phases"] if p["phase"] == phase), 0)


def shown_phases(points):
    names = [p["phase"] for p in points[0]["runs"][0]["phases"]]
    return [name for name in names if any(
        statistics.median(seconds_of(r, name) / r["step_seconds"] for r in point["runs"])
        >= SHOWN_SHARE for point in points)]


def draw_line(axes, points, value, **style):
    """The median of value(run) at each point, in milliseconds, and the range."""
    values = [[1e3 * value(run) for run in point["runs"]] for point in points]
    xs = [point["x"] for point in points]
    line, = axes.plot(xs, [statistics.median(v) for v in values], marker="o", markersize=3,
                      color=COLOURS.get(style["label"]), **style)
    axes.fill_between(xs, [min(v) for v in values], [max(v) for v in values],
                      color=line.get_color(), alpha=0.2, linewidth=0)


def draw(name, growth, folder):
    label, curves = PLOTS[name]
    lines = [(kind, curve, points) for kind, record in growth.items() for curve in curves
             if (points := [p for p in record["results"] if p["curve"] == curve])]
    figure, axes = pyplot.subplots(figsize=(6.4, 4))
    for kind, curve, points in lines:
        prefix = ", ".join(filter(None, [CLASS_NAMES[kind] * (len(growth) > 1), curves[curve]]))
        named = lambda what: f"{prefix}: {what}" if prefix else what
        draw_line(axes, points, lambda run: run["step_seconds"], label=named("step"), linewidth=2)
        if len(lines) == 1:
            draw_line(axes, points, lambda run: run["least_seconds"], label="step, least time",
                      linestyle="--")
            for phase in shown_phases(points):
                draw_line(axes, points, lambda run, phase=phase: seconds_of(run, phase),
                          label=phase, linewidth=1)
    xs = sorted({point["x"] for _, _, points in lines for point in points})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(xs, [short(x) for x in xs])
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.minorticks_off()
    axes.grid(color=GREY, alpha=0.25, linewidth=0.5)
    axes.set_xlabel(label)
    axes.set_ylabel("ms")
    axes.legend(labelcolor=GREY, fontsize=8)
    save(figure, folder / f"{name}.svg")


def save(figure, path):
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)


def draw_speed(results, folder):
    """Bars of Renzan's speed over that of the fastest PyTorch, in groups by model and precision."""
    names = [name for name in targets.RATIOS if name.split("-")[0] in results]
    kinds = [kind for kind in CLASS_COLOURS
             if any(kind in results[name.split("-")[0]] for name in names)]
    figure, axes = pyplot.subplots(figsize=(7.2, 3.4))
    width = 0.8 / len(kinds)
    for row, kind in enumerate(kinds):
        for group, name in enumerate(names):
            record = results[name.split("-")[0]].get(kind)
            if not record:
                continue
            measured, precision = record["results"], name.split("-")[1]
            values = targets.ratios(measured, precision, targets.best_peer(measured, precision))
            x, middle = group + (row - (len(kinds) - 1) / 2) * width, statistics.median(values)
            axes.bar(x, middle, 0.9 * width, color=CLASS_COLOURS[kind],
                     label=CLASS_NAMES[kind] if group == 0 else None)
            axes.errorbar(x, middle, [[middle - min(values)], [max(values) - middle]], color=GREY,
                          linewidth=1, capsize=2)
            axes.text(x, max(values) + 0.06, f"{middle:.2f}", ha="center", fontsize=8)
            if goal := targets.ratio_target(name, kind):
                axes.hlines(goal, x - 0.45 * width, x + 0.45 * width, color=CLASS_COLOURS[kind],
                            linewidth=2.5)
    axes.plot([], [], color=GREY, linewidth=2.5, label="target")
    axes.axhline(1, color=GREY, linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(names)),
                    [targets.model_name(name).replace(", ", "\n") for name in names])
    axes.tick_params(axis="x", length=0)
    axes.set_ylim(0, 4.6)
    axes.set_ylabel("times as fast as PyTorch")
    axes.legend(labelcolor=GREY, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1))
    save(figure, folder / "speed.svg")


def main():
    results, folder = json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2])
    if any(name.split("-")[0] in results for name in targets.RATIOS):
        draw_speed(results, folder)
    for name in PLOTS if "growth" in results else ():
        draw(name, results["growth"], folder)


main()
