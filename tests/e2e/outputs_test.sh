# Whatever a verb writes is written whole, or the verb fails: full and closed outputs, devices,
# links, two writers of one name, limits and signals.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --rows 4000 --seed 5 --output clicks.tsv >/dev/null
$renzan data import --output data clicks.tsv >/dev/null 2>&1
small_config data
$renzan train small.yaml --run-dir run 2>/dev/null

# Standard output on a full disk, and closed by whoever started the process.
if [ -e /dev/full ]; then
  for verb in "data verify data" "data inspect data" "eval run --data data --json" "--version" \
    "train --print-config small.yaml" "checkpoint list run" "plan small.yaml --json" help; do
    status=0
    # shellcheck disable=SC2086
    $renzan $verb >/dev/full 2>log.txt || status=$?
    [ $status = 74 ] || fail "$verb: exit $status with a full disk"
    grep -q "cannot write to standard output" log.txt || fail "$verb: $(cat log.txt)"
  done
fi
{ head -50 clicks.tsv && echo "no row" && tail -50 clicks.tsv; } >bad.tsv
$renzan data import --on-bad-row skip --output closed bad.tsv <&- >&- 2>&-
$renzan data verify closed >/dev/null || fail "messages were written into the data"

# A pipe and the target of a link are written to; a directory is an error, and is left alone.
ln -s target link
mkfifo pipe
cat pipe >received &
for output in link pipe; do $renzan plan small.yaml --workers 2 --output $output >/dev/null; done
wait
[ -L link ] && [ -p pipe ] || fail "replaced: $(ls -l link pipe)"
cmp target received
expect_exit 73 "is a directory" $renzan plan small.yaml --workers 2 --output data
mkdir scores.npy
expect_exit 73 "is a directory" $renzan predict run --data data --output scores.npy
expect_exit 73 "is empty" $renzan data import --output "" clicks.tsv

# Two writers of one name: one is refused, and the other's data are whole.
mkfifo input
$renzan data import --output twice input >first.txt 2>&1 &
first=$!
exec 3>input
head -2000 clicks.tsv >&3
is_staged() { [ -d .twice.partial ]; }
wait_for is_staged
expect_exit 73 "another process is writing" $renzan data import --output twice clicks.tsv
tail -2000 clicks.tsv >&3
exec 3>&-
wait $first || fail "$(cat first.txt)"
expect_exit 0 "4000 rows, all checksums match" $renzan data verify twice

# A limit on the size of files.
(ulimit -f 1 && expect_exit 74 "File too large" $renzan data synth --rows 100000 --output big.tsv)
[ -z "$(find . -name '*.partial')" ] || fail "left: $(find . -name '*.partial')"

# A stop leaves no half of a file.
$renzan data synth --rows 200000 --seed 6 --output more.tsv >/dev/null
$renzan data import --output more more.tsv >/dev/null 2>&1
predict_slowly() {
  out=$1
  with_default_signals "$renzan" predict run --data more --output $out --workers $2 \
    --set training.batch_size=8 --backend $([ $2 = 1 ] && echo local || echo gloo) >log.txt 2>&1 &
  launcher=$!
  has_begun() { [ -e .$out.partial ] || [ -e $out ]; }
  wait_for has_begun
  [ ! -e $out ] || fail "it ended too soon for this test"
}
expect_nothing_left() {
  [ -z "$(find . -name "*$out*")" ] || fail "left half of a file: $(cat log.txt)"
}
for what in "out.csv 1" "out.csv 2" "out.parquet 1"; do
  # shellcheck disable=SC2086
  predict_slowly $what
  kill -TERM $launcher
  expect_end 75
  expect_nothing_left
done
# A worker that stops is not taken for one that has died: the launcher would kill the other, which may
# have to wait for the disk before it can remove its file.
predict_slowly out.csv 2
kill -TERM "$(workers_of $launcher | tail -1)"
expect_end 69
! grep -q "killed by signal" log.txt || fail "killed: $(cat log.txt)"
expect_nothing_left

expect_exit 64 "use at most 8" $renzan eval run --data data --workers 300
expect_exit 64 "must be BEGIN END" $renzan eval run --data data --rows 5 5
expect_exit 64 "'0' is not a whole number of at least 1" $renzan eval run --data data --workers 0
