"""The tables that bench/models prints, in Markdown."""
import statistics

from figures import spread, units


def mean(values):
    """"0.7812 ± 0.0004": the mean and the standard deviation; one value stands alone."""
    text = f"{statistics.mean(values):.4f}"
    return text if len(values) == 1 else f"{text} ± {statistics.stdev(values):.4f}"


def line(model, sides):
    def values(side, key):
        return [result[key] for result in sides[side]]
    auc = {side: values(side, "auc") for side in sides}
    rate = {side: values(side, "samples_per_second") for side in sides}
    ratios = [ours / theirs for ours, theirs in zip(rate["renzan"], rate["fuxictr"])]
    difference = statistics.mean(auc["renzan"]) - statistics.mean(auc["fuxictr"])
    first = sides["renzan"][0]
    same = "yes" if first["sha256"] == first["repeated_sha256"] else "**no**"
    shas = " ".join(sha256[:8] for sha256 in values("renzan", "sha256"))
    return (f"| {model} | {mean(auc['renzan'])} | {mean(auc['fuxictr'])} | {difference:+.4f} | "
            f"{statistics.median(rate['renzan']) / 1000:.1f}k | "
            f"{statistics.median(rate['fuxictr']) / 1000:.1f}k | **{spread(ratios, '.2f')}** | "
            f"{shas} | {same} |")


def table(name, dataset):
    rows = dataset["rows"]
    best = f"; the best possible AUC is {dataset['best_auc']:.4f}" if dataset["best_auc"] else ""
    return "\n".join([
        f"### {name}", "",
        f"{rows['train']:,} rows for training, {rows['valid']:,} for validation, {rows['test']:,} "
        f"for the test; batch {dataset['batch']}{best}.", "",
        "| model | AUC, Renzan | AUC, FuxiCTR | difference | samples/s, Renzan | samples/s, "
        "FuxiCTR | Renzan / FuxiCTR | sha256 by seed | the same with 2 workers |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(line(model, sides) for model, sides in dataset["models"].items())])


def tables(measured):
    machine, datasets = measured["machine"], measured["datasets"]
    torch = next((sides["fuxictr"][0]["torch"] for dataset in datasets.values()
                  for sides in dataset["models"].values()), "?")
    head = (f"{machine['cpu']} ({units(machine)}); {machine['cores']} cores, {machine['busy']:.0%} "
            f"busy before the start; {measured['threads']} threads; PyTorch {torch}. AUC: mean ± "
            "standard deviation over the seeds; samples/s: median, and the median and range of the "
            "seeds' ratios.")
    recipe = "\n".join(f"- {sentence}" for sentence in
                       [*measured["recipe"], f"L2 of tables: {measured['l2']:g}."])
    return "\n\n".join([head, recipe, *(table(name, d) for name, d in datasets.items())])
