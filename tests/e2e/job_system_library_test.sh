#!/usr/bin/env bash
# The job system's verbs are in a library that the program loads when one is used: the trainer works
# without it, and the job system's verbs say what to do.
source "$(dirname "$0")/lib.sh"
build=$(dirname "$(dirname "$renzan")")
whole=$renzan

# The trainer neither links the job system's libraries nor loads its verbs.
! ldd "$renzan" | grep -E 'sqlite|microhttpd' || fail "the trainer links the job system"
loads() {
  LD_DEBUG=files "$@" >/dev/null 2>files.txt
  grep -q 'librenzan_jobs\.so' files.txt
}
for words in "train --help" "help train" "data inspect --help" "doctor --help"; do
  # shellcheck disable=SC2086
  ! loads "$renzan" $words || fail "renzan $words loads the job system"
done
for words in "jobs --help" "help" "--version" "help submit"; do
  # shellcheck disable=SC2086
  loads "$renzan" $words || fail "renzan $words does not load the job system"
done

# The words of both groups, as the library lists them.
"$renzan" help >whole.txt
words=$(sed -n '/^Jobs:/,/^This machine/p' whole.txt | sed -n 's/^  \([a-z-]*\) .*/\1/p')
[ "$(echo $words)" = "submit jobs job pod-run cluster nodes simulate" ] || fail "words: $words"

# Without the library.
mkdir -p trainer/bin trainer/lib
cp "$whole" trainer/bin/
renzan=$work/trainer/bin/renzan
missing="the job system is missing: neither $work/trainer/bin/librenzan_jobs.so nor \
$work/trainer/lib/librenzan_jobs.so exists: build it with \`scripts/build release renzan_jobs\`, or \
reinstall renzan"
for word in $words; do
  expect_exit 66 "error: $missing" "$renzan" $word
  expect_exit 66 "error: $missing" "$renzan" $word --help
  expect_exit 66 "error: $missing" "$renzan" help $word
done
expect_exit 66 "error: $missing" "$renzan" submit --wait -- true
"$renzan" help >trainer.txt 2>warning.txt
grep -qF "warning: without the verbs of the job system: $missing" warning.txt || fail "no warning"
diff <(sed '/^Jobs:/,/^This machine/{/^This machine/!d}' whole.txt) trainer.txt || fail "help"
expect_exit 64 "renzan has no verb 'trian': did you mean 'train'?" "$renzan" trian
"$renzan" --version >version.txt 2>warning.txt
[ ! -s warning.txt ] || fail "version: $(cat warning.txt)"
grep -q '^ *libcurl [^,]*, OpenSSL' version.txt || fail "version: $(cat version.txt)"
"$renzan" doctor --json >doctor.json
python3 - "$missing" <<'PY'
import json, sys

job_system, = [check for check in json.load(open("doctor.json"))["checks"] if check["name"] == "job system"]
assert job_system["state"] == "missing" and job_system["advice"] == sys.argv[1], job_system
PY
# It trains, and is the same.
"$renzan" data synth --format dataset --rows 4000 --output data >out.txt 2>warning.txt
[ ! -s warning.txt ] || grep -qv 'job system' warning.txt || fail "synth: $(cat warning.txt)"
small_config data
"$renzan" train small.yaml --run-dir run >out.txt 2>&1 || { cat out.txt; fail "train"; }
! grep -q 'job system' out.txt || fail "training mentions the job system"

# Found in ../lib, and beside the program.
cp "$build/lib/librenzan_jobs.so" trainer/lib/
"$renzan" help | cmp - whole.txt
mv trainer/lib/librenzan_jobs.so trainer/bin/
"$renzan" help | cmp - whole.txt

# Also where /proc is not mounted, from which the program knows its path elsewhere.
if unshare --map-root-user --mount true 2>unshare.txt; then
  without_proc() {
    unshare --map-root-user --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$@"
  }
  without_proc "$renzan" help | cmp - whole.txt
  without_proc "$renzan" train small.yaml --run-dir without_proc >out.txt 2>&1 ||
    { cat out.txt; fail "train without /proc"; }
fi

# A library of another build: its functions are not called.
python3 - "$("$renzan" --version | sed -n '1s/.*build \([0-9a-f]*\).*/\1/p')" <<'PY'
import sys

path, build = "trainer/bin/librenzan_jobs.so", sys.argv[1].encode()
content = open(path, "rb").read()
assert content.count(build) == 1, "the library does not say its build once"
open(path, "wb").write(content.replace(build, b"0123456789ab"))
PY
expect_exit 66 "trainer/bin/librenzan_jobs.so is of another build than this program (0123456789ab, not " \
  "$renzan" jobs
# A damaged library.
echo nothing >trainer/bin/librenzan_jobs.so
expect_exit 66 "the job system cannot be loaded: " "$renzan" jobs

# What the job system logs has the program's form.
renzan=$whole
expect_exit 64 "error: pod-run: no command: it goes after --" "$renzan" pod-run
