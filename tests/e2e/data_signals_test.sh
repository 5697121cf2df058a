# A stop signal ends `renzan data` cleanly, even while it waits for input, unless its caller made it
# ignore that signal: nohup (SIGHUP), a background job of a shell (SIGINT).
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --rows 2000 --seed 5 --output clicks.tsv >/dev/null
mkfifo input

# begin COMMAND...: imports from a pipe whose other end this shell holds, after half of the rows.
begin() {
  "$@" data import input --output data >log.txt 2>&1 &
  launcher=$!
  exec 3>input
  head -1000 clicks.tsv >&3
}

has_opened() { readlink "/proc/$launcher/fd/"* | grep -qx "$work/$1"; }
for signal in INT TERM HUP; do
  # Before the pipe has a writer.
  with_default_signals "$renzan" data import input --output data >log.txt 2>&1 &
  launcher=$!
  wait_for has_opened input
  kill "-$signal" $launcher
  expect_end 75

  begin with_default_signals "$renzan"
  kill "-$signal" $launcher
  expect_end 75
  exec 3>&-
  expect_log "stopped on request"
  [ -z "$(ls -A | grep data)" ] || fail "$signal: leaves $(ls -A)"
done

ignoring() {
  trap '' "$1"
  shift
  exec "$@"
}
for signal in INT TERM HUP; do
  begin ignoring $signal "$renzan"
  kill "-$signal" $launcher
  tail -1000 clicks.tsv >&3 || fail "$signal ended it"
  exec 3>&-
  expect_end 0
  expect_log "data: 2000 rows"
  rm -r data
done
