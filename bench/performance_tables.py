"""The tables of docs/performance.md and the pages below it, and their references to plots, as
Markdown, from what bench/performance measured."""
import statistics

import performance_targets as targets
from figures import spread, units

CLASS_NAMES = {"amx": "AMX", "avx512_bf16": "AVX-512, fast bfloat16", "avx512": "AVX-512",
               "other": "no AVX-512"}
PEER_NAMES = {"eager": "PyTorch eager, float32", "fp32": "PyTorch compiled + FBGEMM, float32",
              "bf16": "PyTorch compiled + FBGEMM, bfloat16"}
PLOT_NAMES = {"batch": "batch size", "tables": "number of tables", "rows": "rows of each table",
              "dim": "embedding dimension", "pooling": "pooling factor", "workers": "workers"}
SHOWN_SHARE = 0.02  # of a step: what a phase needs to be in the table of phases


def markdown(columns, rows):
    lines = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    return "\n".join(lines + [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows])


def milliseconds(values):
    return spread(values, ".1f", 1e3)


def ratio_table(name, kind, measured):
    precision = name.split("-")[1]
    best, check = targets.best_peer(measured, precision), targets.ratio_check(name, kind, measured)
    rows = [(f"Renzan, {targets.PRECISION_NAMES[precision]}",
             spread(measured["renzan"][precision], ",.0f"), "", "", "")]
    for variant, rates in measured["peers"].items():
        if variant == "bf16" and precision == "fp32":
            continue
        verdict = (check.target, check.verdict) if variant == best else ("", "")
        rows.append((PEER_NAMES[variant], spread(rates, ",.0f"),
                     spread(targets.ratios(measured, precision, variant), ".2f"), *verdict))
    return markdown(("program", "samples/s", "Renzan / this", "target", "verdict"), rows)


def limits_table(_, measured):
    def rates(key, form, unit):
        return f"{spread([run[key] for run in measured], form, 1e-9)} {unit}"
    return markdown(("limit of two threads", "measured"), [
        (f"matrix products, float32 ({measured[0]['isa']})",
         rates("matrix_float32_flops", ".0f", "GFLOP/s")),
        (f"matrix products, bfloat16 ({measured[0]['matrix_bfloat16_isa']})",
         rates("matrix_bfloat16_flops", ".0f", "GFLOP/s")),
        *([(f"int8 products ({measured[0].get('matrix_int8_isa', 'avx512_vnni')})",
            rates("matrix_int8_ops", ".0f", "Gop/s"))]
          if measured[0]["matrix_int8_ops"] else []),
        ("copying memory, read + written", rates("stream_bytes_per_second", ".1f", "GB/s")),
        ("random rows of 64 bytes (D=16)", rates("random_rows_64_bytes_per_second", ".1f", "GB/s")),
        ("random rows of 512 bytes (D=128)",
         rates("random_rows_512_bytes_per_second", ".1f", "GB/s"))])


def share_table(checks, runs):
    """`runs`: what each check is about, with its seconds and least seconds."""
    rows = [(check.what, milliseconds([seconds for seconds, _ in each]),
             milliseconds([least for _, least in each]), check.text, check.target, check.verdict)
            for check, each in zip(checks, runs)]
    return markdown(("model", "ms", "minimum ms", "share", "target", "verdict"), rows)


def roofline_table(_, measured):
    return share_table(targets.roofline_checks(measured),
                       [[(r["step_seconds"], r["least_seconds"]) for r in runs]
                        for runs in measured["runs"].values()])


def products_table(_, measured):
    return share_table(targets.products_checks(measured),
                       [[(p["seconds"], p["least_seconds"])
                         for p in map(targets.products_phase, runs)]
                        for name, runs in measured["runs"].items() if name.endswith("fp32")])


def phases_table(_, measured):
    rows = []
    for name, runs in measured["runs"].items():
        for part in runs[0]["phases"]:
            phases = [next(p for p in run["phases"] if p["phase"] == part["phase"]) for run in runs]
            share = statistics.median(p["seconds"] / run["step_seconds"]
                                      for p, run in zip(phases, runs))
            if share < SHOWN_SHARE:
                continue
            least = [p["least_seconds"] for p in phases if "least_seconds" in p]
            rows.append((targets.model_name(name), part["phase"],
                         milliseconds([p["seconds"] for p in phases]), f"{100 * share:.0f} %",
                         milliseconds(least) if least else ""))
    return markdown(("model", "phase", "ms", "of the step", "minimum ms"), rows)


def ceilings_table(kind, measured, results):
    """How fast training would be if everything but the matrix products took no time."""
    rows = []
    for name, runs in measured["runs"].items():
        model, precision = name.split("-")
        # Older results lack the time of the products alone, which were all in one phase.
        rates = [measured["batch"] / run.get("product_seconds",
                                             targets.products_phase(run)["least_seconds"])
                 for run in runs]
        row = [targets.model_name(name), spread(rates, ",.0f")]
        record = results.get(model, {}).get(kind)
        if record:
            best = targets.best_peer(record["results"], precision)
            peer = statistics.median(record["results"]["peers"][best])
            goal = targets.ratio_target(name, kind)
            row += [f"{peer:,.0f}", spread([rate / peer for rate in rates], ".2f"),
                    f"≥ {goal:.2f}" if goal else "none"]
        rows.append(row + ["not measured"] * (5 - len(row)))
    return markdown(("model", "samples/s at most", "best peer", "ratio at most", "target"), rows)


def workers_table(_, measured):
    rows = [("1 worker of two threads", spread(measured["one"], ",.0f"), "", "", "")]
    rows += [(check.what, spread(several["rates"], ",.0f"), check.text, check.target, check.verdict)
             for check, several in zip(targets.worker_checks(measured), measured["several"])]
    return markdown(("workers", "samples/s", "ratio", "target", "verdict"), rows)


def embedding_table(_, measured):
    rows = [(*row, check.target, check.verdict)
            for row, check in zip(measured["rows"], targets.embedding_checks(measured))]
    return markdown((*measured["columns"], "target", "verdict"), rows)


def batches_table(_, measured):
    rows = [(f"{point['batch']:,}", spread(point["renzan"]["fp32"], ",.0f"),
             *(spread(point["peers"][variant], ",.0f") for variant in ("eager", "fp32")),
             check.text, check.target, check.verdict)
            for point, check in zip(measured, targets.batch_checks(measured))]
    return markdown(("batch", "Renzan, samples/s", "eager", "compiled", "Renzan / the faster",
                     "target", "verdict"), rows)


def quality_table(_, measured):
    compared = [(c, setting) for c in measured for setting in list(c["auc"])[1:]]
    rows = [(c["data"], c["model"], setting, len(c["auc"]["fp32"]),
             *(f"{statistics.mean(c['auc'][s]):.5f}" for s in ("fp32", setting)),
             check.text, check.target, check.verdict)
            for (c, setting), check in zip(compared, targets.quality_checks(measured))]
    return markdown(("data", "model", "16 bits in", "seeds", "AUC float32", "AUC 16 bits",
                     "difference", "target", "verdict"), rows)


def memory_table(_, measured):
    rows = [(run["run"], f"{run['said']:,.0f}", f"{run['peak']:,.0f}", check.text, check.target,
             check.verdict) for run, check in zip(measured, targets.memory_checks(measured))]
    return markdown(("run", "estimate, MiB", "peak, MiB", "peak / estimate", "target", "verdict"),
                    rows)


def estimates_table(_, measured):
    rows = [(run["model"], f"{run['predicted_ms']:.1f}", f"{run['measured_ms']:.1f}", check.text,
             check.target, check.verdict)
            for run, check in zip(measured, targets.estimate_checks(measured))]
    return markdown(("model", "predicted, ms", "measured, ms", "measured / predicted", "target",
                     "verdict"), rows)


def other_table(_, measured):
    rows = [(part["what"], *(spread(part["seconds"][threads], ".2f") for threads in ("1", "2")),
             spread([a / b for a, b in zip(*(part["seconds"][t] for t in ("1", "2")))], ".2f"))
            for part in measured]
    return markdown(("command", "1 thread, s", "2 threads, s", "speed-up"), rows)


# The section of each table, and its text from (class of the machine, measured).
TABLES = {
    **{name: (name.split("-")[0], lambda kind, m, name=name: ratio_table(name, kind, m))
       for name in targets.RATIOS},
    "limits": ("limits", limits_table),
    "roofline": ("roofline", roofline_table),
    "products": ("roofline", products_table),
    "phases": ("roofline", phases_table),
    "workers": ("workers", workers_table),
    "embedding": ("embedding", embedding_table),
    "batches": ("batches", batches_table),
    "precision": ("precision", quality_table),
    "rows": ("rows", quality_table),
    "memory": ("memory", memory_table),
    "estimates": ("estimates", estimates_table),
    "other": ("other", other_table),
}


def source(record):
    """Where and when a table was measured."""
    machine = record["machine"]
    return (f"{machine['cpu']}, {machine['cores']} cores ({units(machine)}; kernels used: "
            f"{machine['isa']}, in bfloat16 {machine['isa_bf16']}), "
            f"{100 * machine['busy']:.0f} % busy before the start. {record['date']}, commit "
            f"{record['commit']}, `{record['command']}`.")


def all_checks(results):
    """(class of the machine, check) for each target that has been measured."""
    return [(kind, check) for section, checks in targets.CHECKS
            for kind, record in results.get(section, {}).items()
            for check in checks(kind, record["results"])]


def summary(results):
    rows = [(check.what, CLASS_NAMES[kind], check.target, check.text, check.verdict)
            for kind, check in all_checks(results)]
    return markdown(("what", "machine", "target", "measured", "verdict"), rows)


def headline(results):
    """The first paragraph: ratios to PyTorch by precision, and how many targets are met."""
    def ratios(precision):
        values = [targets.ratio_check(name, kind, record["results"]).value
                  for name in targets.RATIOS if name.endswith(precision)
                  for kind, record in results.get(name.split("-")[0], {}).items()]
        return f"{min(values):.2f} to {max(values):.2f}" if values else "(not measured)"
    verdicts = [check.verdict for _, check in all_checks(results)]
    return (f"On two cores, Renzan in float32 trains DLRM {ratios('fp32')} times as fast as the "
            f"fastest setting of PyTorch in float32. In bfloat16 it trains DLRM and DLRM-DCNv2 "
            f"{ratios('bf16')} times as fast as the fastest setting in any precision, depending on "
            f"the model and on the processor's bfloat16 instructions. Of "
            f"{len(verdicts)} targets for processors, {verdicts.count('met')} are met and "
            f"{verdicts.count('missed')} are missed ([all of them](performance/targets.md)).")


def tables(results):
    """{name: text} for all tables and plots; `results`: {section: {class of machine: record}}."""
    texts = {"headline": headline(results), "summary": summary(results)}
    by_name = {**TABLES, "ceilings": ("roofline", lambda kind, m: ceilings_table(kind, m, results))}
    for name, (section, render) in by_name.items():
        parts = [f"{CLASS_NAMES[kind]}:\n\n{render(kind, record['results'])}\n\n{source(record)}"
                 for kind, record in results.get(section, {}).items()]
        texts[name] = "\n\n".join(parts) or "Not measured."
    growth = results.get("growth", {})
    texts["growth"] = "\n\n".join(map(source, growth.values())) or "Not measured."
    for name, what in PLOT_NAMES.items():
        texts[f"{name}-plot"] = (f"![The time of a step by {what}]({name}.svg)"
                                 if growth else "Not measured.")
    return texts
