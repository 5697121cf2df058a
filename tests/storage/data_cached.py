"""Training on datasets in a store, through caches that are cold, warm, small, or of several runs."""

import re
import resource

from checks import expect, expect_equal
from data_runs import BATCH, FITS, Watch, url
from faulty_store import FaultyStore

THIRD = 5  # MiB, of the 15 of `mixed`
# A third of `wide`, in which one mixed window fits, and a bit more than half, in which two do.
WIDE_THIRD, WIDE_HALF = 34, 60
OPEN_FILES = 1024  # the limit of most systems, unless a program asks for more
WIDE_STEPS = 3 * 65536 // BATCH  # of three windows


def evaluation(run):
    """The run's evaluation of the held-out samples."""
    found = re.findall(r"eval at step \d+: .*", run.log())
    return found or run.fail("no evaluation")


def whole_caches(runs, _):
    """Everything fits: it is fetched once, by one run, however the other runs differ."""
    for order in "mixed", "stored":
        cache = runs.cache(FITS)
        cold = runs.train_right(f"cold-{order}", "mixed", order, cache=cache)
        metrics = runs.metrics(cold)
        expect_equal(metrics["data/cache_fetched_bytes"], runs.bytes_of("mixed"),
                     "bytes fetched into a cold cache")
        expect(metrics["data/cache_waited_seconds"] > 0, "a cold cache lets nobody wait")
        for workers in 1, 2:
            warm = runs.train_right(f"warm-{order}-{workers}", "mixed", order, cache=cache,
                                    workers=workers)
            metrics = runs.metrics(warm)
            expect_equal([metrics[f"data/cache_{name}"]
                          for name in ("fetched_bytes", "hit_rate", "waited_seconds")],
                         [0, 1, 0], "fetched, hit rate and seconds waited with a warm cache")
            expect(re.search("data cache: 100.0 % of .* 0.0 MB fetched", warm.log()), warm.log())
        cache.expect_sound(f"rows {order}")
    cache = runs.cache(FITS)
    runs.train_right("cold-together", "mixed", cache=cache, workers=2)
    cache.expect_sound("after two workers")
    expect_equal(cache.there(), runs.bytes_of("mixed"), "bytes there")


def small_caches(runs, _):
    """Caches that hold a third or half of the data."""
    for workers in 1, 2:
        cache = runs.cache(THIRD)
        with Watch(cache):
            runs.train_right(f"third-{workers}", "mixed", "stored", cache=cache, workers=workers)
        cache.expect_sound(f"{workers} workers")
    for workers, mebibytes in ((1, WIDE_THIRD), (2, WIDE_HALF)):
        cache = runs.cache(mebibytes)
        with Watch(cache):
            runs.train_right(f"wide-{workers}", "wide", steps=WIDE_STEPS, cache=cache,
                             workers=workers)
        cache.expect_sound(f"wide, {workers} workers")


def partial_reads(runs, store):
    """Training on some rows in the middle of a large shard fetches little more than those rows."""
    rows = {"data.train.rows": "[300000,310000]"}  # of 700,000, with 200,000 per shard
    disk = runs.train("rows-disk", "./wide", keys=rows).sha256()
    needed = runs.bytes_of("wide") / 70
    for workers in 1, 2:
        with FaultyStore(store) as counted:
            run = runs.train(f"rows-{workers}", "wide", cache=runs.cache(WIDE_THIRD), keys=rows,
                             workers=workers, store=counted)
            served = sum(each.bytes_out for each in counted.requests("GET", r"\.npy")
                         if "checksums" not in each.target)
        expect_equal(run.sha256(), disk, f"the model of some rows, {workers} workers")
        # Chunks consist of whole blocks, and each file's beginning is read for its header.
        expect(needed <= served < 2 * needed, f"{served} bytes were fetched, {needed:.0f} needed")


def evaluations(runs, _):
    """The held-out samples are in the store, too, and share the cache."""
    def keys(path):
        return {"data.eval.path": path, "training.eval_every": 40}

    disk = runs.train("eval-disk", "./mixed", order="stored", keys=keys("./held-out"))
    # Caches for both datasets, for one, and for neither.
    for mebibytes in FITS, 16, THIRD:
        cache = runs.cache(mebibytes)
        run = runs.train(f"eval-{mebibytes}", "mixed", order="stored", cache=cache,
                         keys=keys(url("held-out")))
        expect_equal((run.sha256(), evaluation(run)), (disk.sha256(), evaluation(disk)),
                     f"model and evaluation, {mebibytes} MiB")
        cache.expect_sound(f"with an evaluation, {mebibytes} MiB")
    expect_equal(runs("eval", "eval-disk", "--data", url("held-out")).splitlines()[1:],
                 runs("eval", "eval-disk", "--data", "./held-out").splitlines()[1:], "eval")
    for name, data in ("store.csv", url("held-out")), ("disk.csv", "./held-out"):
        runs("predict", "eval-disk", "--output", name, "--data", data)
    expect_equal((runs.folder / "store.csv").read_text(), (runs.folder / "disk.csv").read_text(),
                 "predict")


def keys(runs, store):
    """Training does not fetch them; predictions write them, and the rows' numbers in the input."""
    lines = (f"k {row},{row % 3 == 0:d},{row % 10},v{row % 50}\n" for row in range(50000))
    (runs.folder / "keyed.csv").write_text("k,y,x,c\nbad,maybe,1,v1\n" + "".join(lines))
    (runs.folder / "keyed.yaml").write_text(
        "columns: {k: {role: key}, y: {role: label}, x: {role: dense}, c: {role: categorical}}")
    for place in "keyed", url("keyed"):
        runs("data", "import", "keyed.csv", "--format", "csv", "--schema", "keyed.yaml",
             "--shard-rows", "15000", "--on-bad-row", "skip", "--output", place)
    runs("data", "verify", url("keyed"))
    with FaultyStore(store) as counted:
        runs.train_right("keyed-store", "keyed", order="stored", cache=runs.cache(FITS),
                         store=counted)
        fetched = [each.target for each in counted.requests("GET", r"\.npy")]
    expect(fetched and not [name for name in fetched if "/k.key" in name], f"training: {fetched}")
    for name, data in ("keyed-store.csv", url("keyed")), ("keyed-disk.csv", "./keyed"):
        runs("predict", "keyed-store", "--output", name, "--data", data, "--with", "k,input_row",
             "--rows", "20000", "50000")
    scores = [(runs.folder / f"keyed-{where}.csv").read_text() for where in ("store", "disk")]
    expect_equal(*scores, "predict with keys")
    joined = [line.split(",")[:2] for line in scores[0].splitlines()[1:]]
    expect_equal(joined, [[f"k {row}", f"{row + 1}"] for row in range(20000, 50000)], "the join")


def sample_weights(runs, _):
    """They come through the cache like all else."""
    lines = (f"{row % 3 == 0:d},{row % 7 / 3:g},{row % 10},v{row % 50}\n" for row in range(200000))
    (runs.folder / "weighted.csv").write_text("y,w,x,c\n" + "".join(lines))
    (runs.folder / "weighted.yaml").write_text(
        "columns: {y: {role: label}, w: {role: weight}, x: {role: dense}, c: {role: categorical}}")
    for place in "weighted", url("weighted"):
        runs("data", "import", "weighted.csv", "--format", "csv", "--schema", "weighted.yaml",
             "--shard-rows", "150000", "--output", place)
    # They do not fit, so that only what is asked for is fetched.
    runs.train_right("weighted-store", "weighted", order="stored", cache=runs.cache(2))
    expect_equal(runs("eval", "weighted-store", "--data", url("weighted")).splitlines()[1:],
                 runs("eval", "weighted-store", "--data", "./weighted").splitlines()[1:], "eval")


def resumed_runs(runs, _):
    """Runs resume in the middle of an epoch, with the cache that the first run left, and without
    one."""
    every = {"checkpoint.every_steps": 10, "training.epochs": 2}
    whole = runs.train("epochs-disk", "./mixed", order="stored", keys=every).sha256()
    cache = runs.cache(THIRD)
    for steps, workers in (30, 1), (90, 2):  # of 68 an epoch
        runs.train("resumed", "mixed", order="stored", steps=steps, keys=every, cache=cache,
                   workers=workers)
    cache = runs.cache(THIRD)
    run = runs.train("resumed", "mixed", order="stored", keys=every, cache=cache)
    expect(re.search("resuming from .* at step 90$", run.log(), re.MULTILINE), run.log())
    expect_equal(run.sha256(), whole, "the model of a run that was resumed")


def shared_caches(runs, _):
    """Two runs share a cache at the same time."""
    for name, others in (("same", "mixed"), ("different", "wide")):
        cache = runs.cache(2 * THIRD)
        first = [f"first-{name}", "mixed", cache]
        second = [f"second-{name}", others, cache]
        steps = 0 if others == "mixed" else WIDE_STEPS
        with Watch(cache):
            both = [runs.start(*first, order="stored"),
                    runs.start(*second, order="stored", steps=steps)]
            models = [run.end().sha256() for run in both]
        expect_equal(models, [runs.expected("mixed", "stored"),
                              runs.expected(others, "stored", steps)],
                     f"models of runs with the {name} data")
        cache.expect_sound(f"after two runs with the {name} data")


def lowered_limits(runs, _):
    """A cache directory whose limit was higher before."""
    cache = runs.cache(FITS)
    runs.train_right("before", "mixed", "stored", cache=cache)
    cache.mebibytes = THIRD
    runs.train_right("after", "mixed", "stored", cache=cache)
    cache.expect_sound("after its limit has become smaller")


def many_files(runs, _):
    """More files than a process may keep open, whose beginnings are larger than the cache."""
    words = ["data", "synth", "--format", "dataset", "--rows", "24000", "--features", "4",
             "--multi-hot", "3", "--shard-rows", "200"]
    for place in "shards", url("shards"):
        runs(*words, "--output", place)
    disk = runs.train("shards-disk", "./shards", order="stored").sha256()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, OPEN_FILES), hard))
    try:
        cache = runs.cache(2)
        run = runs.train("shards-cached", "shards", order="stored", cache=cache)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    expect_equal(run.sha256(), disk, "the model of many files")
    cache.expect_sound("with many files")
