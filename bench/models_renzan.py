"""Trains a model of the catalogue by FuxiCTR's rule, as its users could: an epoch, an evaluation,
and the next epoch from that model (`renzan train --initialize-from`), at a tenth of the learning
rate after each epoch without a better AUC; the best epoch counts."""
import json
import shutil
import statistics

from commands import RENZAN, run
from models_recipe import MIN_DELTA, MIN_RATE_FACTOR, PATIENCE, RATE_DECAY, renzan_config


def one_epoch(config, folder, previous, flags):
    """AUC on the validation data, and the rates of the windows but the first, which warms up."""
    settings = folder.with_suffix(".yaml")
    settings.write_text(json.dumps(config))
    start = ("--initialize-from", previous) if previous else ()
    run(RENZAN, "train", settings, "--run-dir", folder, *start, *flags)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rates = [r["train/samples_per_second"] for r in records if "train/samples_per_second" in r]
    return next(r["eval/auc"] for r in records if "eval/auc" in r), rates[1:] or rates


def train(model, data, seed, work, *flags, **sizes):
    """{"run": the directory of the best epoch, "sha256": ..., "epochs": ...,
    "samples_per_second": ...}"""
    best, best_auc, previous, factor, failed, rates = None, 0.0, None, 1.0, 0, []
    epoch = 0
    while epoch < sizes["epochs"] and failed < PATIENCE:
        folder = work / f"epoch-{epoch}"
        config = renzan_config(model, data, seed, epoch, factor, sizes["l2"], sizes["threads"])
        auc, seen = one_epoch(config, folder, previous, flags)
        # In the first epoch of all, rows are drawn when they are first looked up.
        rates = seen if epoch < 2 else rates + seen
        if previous and previous != best:
            shutil.rmtree(previous)
        previous, epoch = folder, epoch + 1
        if auc < best_auc + MIN_DELTA:
            failed += 1
            factor = max(factor * RATE_DECAY, MIN_RATE_FACTOR)
            continue
        if best and best != previous:
            shutil.rmtree(best, ignore_errors=True)
        best, best_auc, failed = folder, auc, 0
    return {"run": best, "epochs": epoch, "samples_per_second": statistics.harmonic_mean(rates),
            "sha256": json.loads((best / "model/manifest.json").read_text())["model_sha256"]}


def measure(model, data, seed, work, repeat, **sizes):
    """{"auc": ..., "log_loss": ..., "epochs": ..., "samples_per_second": ..., "sha256": ...}; with
    `repeat` also "repeated_sha256", of the same with two workers of one thread."""
    (work / "run").mkdir()
    result = train(model, data, seed, work / "run", **sizes)
    tested = json.loads(run(RENZAN, "eval", result.pop("run"), "--data", data["test"]["path"],
                            "--threads", sizes["threads"], "--json"))
    result |= {"auc": tested["auc"], "log_loss": tested["log_loss"]}
    if repeat:
        (work / "again").mkdir()
        result["repeated_sha256"] = train(model, data, seed, work / "again", "--workers", 2,
                                          "--threads", 1, **sizes)["sha256"]
    return result
