# A dataset that is corrupted or truncated during training ends the run with 65, not with a signal,
# and the launcher does not restart it.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
endless="--set training.epochs=1000000 --workers 2 --set elastic.max_restarts=3
  --set elastic.backoff_seconds=0"

train_in_background $endless
truncate -s 200 data/shard-00000/ids.npy
expect_end 65
expect_log "ids.npy"
expect_log "truncated"
! grep -q "restarting with" log.txt || fail "restarted with corrupt data: $(cat log.txt)"

rm -rf run data
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
printf 'X' | dd of=data/shard-00000/ids.npy bs=1 seek=5000 conv=notrunc 2>/dev/null
status=0
$renzan train small.yaml --run-dir run $endless >log.txt 2>&1 || status=$?
[ $status -eq 65 ] || { cat log.txt >&2; fail "exit $status instead of 65"; }
expect_log "ids.npy: bytes 0 to 65535 are corrupt"
! grep -q "restarting with" log.txt || fail "restarted with corrupt data: $(cat log.txt)"
