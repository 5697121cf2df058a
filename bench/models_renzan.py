"""Trains a model of the catalogue by FuxiCTR's rule: a tenth of the learning rate after each epoch
without a better AUC; the best epoch counts."""
import json
import statistics

from commands import RENZAN, run
from models_recipe import renzan_config


def train(model, data, seed, work, *flags, **sizes):
    """{"run": its directory, "sha256": ..., "epochs": ..., "samples_per_second": ...}"""
    settings, folder = work / "config.yaml", work / "model"
    settings.write_text(json.dumps(renzan_config(model, data, seed, **sizes)))
    run(RENZAN, "train", settings, "--run-dir", folder, *flags)
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    rates = [(r["step"], r["train/samples_per_second"]) for r in records
             if "train/samples_per_second" in r]
    # In the first epoch, rows are drawn when they are first looked up.
    epoch = data["train"]["rows"] // data["batch"]
    later = [rate for step, rate in rates if step > epoch] or [rate for _, rate in rates]
    return {"run": folder, "epochs": round(max(step for step, _ in rates) / epoch),
            "samples_per_second": statistics.harmonic_mean(later),
            "sha256": json.loads((folder / "model/manifest.json").read_text())["model_sha256"]}


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
