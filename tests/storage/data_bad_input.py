"""What users do wrong with a cache, and what disks do: one line, with what to do."""

import shutil
import subprocess

from checks import expect, expect_equal
from data_runs import FITS, MIB, Cache, url
from store import BUCKET, GETTER, READER
from training import LIMIT_S, WRONG_SECRET


def fails(runs, code, *parts, **others):
    shutil.rmtree(runs.folder / "bad", ignore_errors=True)
    line = runs.train("bad", others.pop("data", "mixed"), code=code, **others)
    for part in parts:
        expect(part in line, f"no '{part}' in: {line}")


def places(runs, _):
    """Where a cache is unless the configuration says so."""
    home = runs.folder / "home/.cache/renzan/data"
    shutil.rmtree(home, ignore_errors=True)
    for name, variables, directory in (
            ("home", {}, home),
            ("xdg", {"XDG_CACHE_HOME": str(runs.folder / "xdg")}, runs.folder / "xdg/renzan/data"),
            ("variable", {"RENZAN_DATA_CACHE": str(runs.folder / "var")}, runs.folder / "var")):
        runs.train_right(f"place-{name}", "held-out", variables=variables)
        expect_equal(Cache(str(directory), FITS).there(), runs.bytes_of("held-out"),
                     f"bytes in {directory}")
    fails(runs, 78, "data.cache.directory", "RENZAN_DATA_CACHE", data="held-out",
          variables={"HOME": None})


def wrong_settings(runs, _):
    (runs.folder / "file").write_text("")
    fails(runs, 73, str(runs.folder / "file"), cache=Cache(str(runs.folder / "file"), FITS))
    fails(runs, 73, str(runs.folder / "file"), cache=Cache(str(runs.folder / "file/below"), FITS))
    fails(runs, 78, "raise data.cache.size", cache=runs.cache(1))
    fails(runs, 78, "data.cache.size", "must be an amount such as 512MiB",
          keys={"data.cache.size": "many"})
    fails(runs, 66, url("no-such-data"), "renzan data import", data="no-such-data",
          cache=runs.cache(FITS))
    fails(runs, 66, "s3://no-such-bucket", data="s3://no-such-bucket/data",
          cache=runs.cache(FITS))


def rights(runs, store):
    """Users who may only get objects can train; users who may not are told why."""
    runs.train_right("getter", "held-out", cache=runs.cache(FITS),
                     variables=store.environment(GETTER))
    fails(runs, 66, url("no-such-data"), "renzan data import", data="no-such-data",
          cache=runs.cache(FITS), variables=store.environment(GETTER))
    runs("data", "synth", "--format", "criteo", "--rows", "2000", "--output", "clicks.tsv")
    temporary = runs.folder / "tmp"
    temporary.mkdir()

    def import_fails(part, **variables):
        line = runs("data", "import", "--format", "criteo", "--vocabulary", "hash:100", "--output",
                    url("not-allowed"), "clicks.tsv", code=77, TMPDIR=str(temporary), **variables)
        expect(part in line, line)
        expect_equal([*temporary.iterdir()], [], "what an import has left in TMPDIR")

    import_fails(f"PUT {url('not-allowed')}", **store.environment(READER))
    for variables, part in (
            ({"AWS_SECRET_ACCESS_KEY": WRONG_SECRET},
             "the secret key of AWS_ACCESS_KEY_ID is wrong"),
            ({"AWS_ACCESS_KEY_ID": "nobody"},
             "does not know the credentials of AWS_ACCESS_KEY_ID")):
        import_fails(part, **variables)
        fails(runs, 77, part, data="held-out", cache=runs.cache(FITS), variables=variables)
    expect_equal(store.client().keys(BUCKET, "not-allowed"), [], "what was not allowed")


def full_disks(runs, store):
    """A cache that may be larger than its disk, and a dataset made on such a disk."""
    directory = runs.folder / "tiny"
    directory.mkdir()
    mount = ["unshare", "-m", "--", "sh", "-c",
             'mount -t tmpfs -o size=6m tmpfs "$0" && exec "$@"', str(directory)]
    if subprocess.run([*mount, "true"], capture_output=True).returncode != 0:
        print("  left out: no mount namespace here, and so no full disk")
        return
    runs("data", "synth", "--format", "criteo", "--rows", "50000", "--output", "many.tsv")
    for vocabulary in "hash:100", "threshold:2":
        done = subprocess.run(
            [*mount, runs.program, "data", "import", "--format", "criteo", "--vocabulary",
             vocabulary, "--output", url("too-large"), "many.tsv"], cwd=runs.folder,
            env={**runs.environment(), "TMPDIR": str(directory)}, capture_output=True, text=True,
            timeout=LIMIT_S)
        said = done.stdout + done.stderr
        expect_equal(done.returncode, 74, f"a full disk: {said}")
        expect("No space left on device" in said and "set TMPDIR to a larger" in said, said)
    expect_equal(store.client().keys(BUCKET, "too-large"), ["too-large/.lock"], "what did not fit")
    for order, workers in ("stored", 1), ("mixed", 2):
        command = [runs.program, "train", "config.json", "--run-dir", f"full-{order}", "--workers",
                   str(workers), "--threads", "1", "--set", f"data.train.path={url('mixed')}"]
        for key, value in (Cache(str(directory), 1024).keys()
                           | {"data.shuffle": str(order == "mixed").lower()}).items():
            command += ["--set", f"{key}={value}"]
        done = subprocess.run([*mount, *command], cwd=runs.folder, env=runs.environment(),
                              capture_output=True, text=True, timeout=LIMIT_S)
        said = done.stdout + done.stderr
        expect_equal(done.returncode, 74, f"a full disk: {said}")
        expect("No space left on device" in said and str(directory) in said, said)
        expect("set data.cache.size" in said, said)
        expect("model sha256" not in said, said)
