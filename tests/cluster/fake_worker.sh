#!/bin/sh
# A fake worker that records what it does in a ledger, for tests of the job system.
#
#   fake_worker.sh LEDGER STEPS CODE [saves] [loud] [orphan] [fails=N] [artifacts=DIR]
#
# Does STEPS steps and exits with CODE. saves: follows the launch contract, so each step is done once.
# loud: prints many lines per step. orphan: leaves a process in another session behind. fails=N: exits
# with 3 before its last step, the first N times.
ledger=$1 steps=$2 code=$3
shift 3
saves='' loud='' orphan='' fails=0 artifacts=''
for word in "$@"; do
  case $word in
    fails=*) fails=${word#fails=} ;;
    artifacts=*) artifacts=${word#artifacts=} ;;
    *) eval "$word=yes" ;;
  esac
done
rank=${RANK:-0}
stop=''
trap 'stop=yes' TERM

# A line is one write, so that lines of different workers do not mix.
note() {
  printf '%s %s %s %s %s\n' "$RENZAN_JOB_ID" "$RENZAN_ATTEMPT" "$rank" $$ "$1" >>"$ledger/notes"
}
note begin

# Locks that reveal another process of the same worker or with the same devices. All our processes
# hold them.
exec 4>>"$ledger/locks/job-$RENZAN_JOB_ID-$rank"
flock -n 4 || note overlap-job
fd=5
for device in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
  eval "exec $fd>>\"$ledger/locks/device-$RENZAN_NODE-$device\""
  flock -n $fd || note "overlap-device-$RENZAN_NODE-$device"
  fd=$((fd + 1))
done

output=$RENZAN_RUN_DIR/output.$RENZAN_ATTEMPT.$rank
say() {
  printf '%s\n' "$1" >>"$output"
  printf '%s\n' "$1"
}

at=0
[ ! -e "$RENZAN_RUN_DIR/saved.$rank" ] || at=$(cat "$RENZAN_RUN_DIR/saved.$rank")
save() {
  echo "$at" >"$RENZAN_RUN_DIR/saving.$rank"
  mv "$RENZAN_RUN_DIR/saving.$rank" "$RENZAN_RUN_DIR/saved.$rank"
}

say "attempt $RENZAN_ATTEMPT rank $rank of ${WORLD_SIZE:-1} on $RENZAN_NODE from step $at"
[ -z "$orphan" ] || setsid sleep 1000 &
while [ "$at" -lt "$steps" ]; do
  if [ -n "$stop" ]; then
    [ -z "$saves" ] || { save; note stopped; exit 75; }
    note stopped
    exit 143
  fi
  failed=0
  [ ! -e "$RENZAN_RUN_DIR/failed" ] || failed=$(cat "$RENZAN_RUN_DIR/failed")
  if [ "$rank" = 0 ] && [ $((at + 1)) = "$steps" ] && [ "$failed" -lt "$fails" ]; then
    echo $((failed + 1)) >"$RENZAN_RUN_DIR/failed"
    say "fails"
    note failed
    exit 3
  fi
  at=$((at + 1))
  echo "$at" >>"$RENZAN_RUN_DIR/steps.$rank"
  say "step $at"
  [ -z "$loud" ] || say "$(seq "$at"000 "$at"999)"
  sleep 0.04
done
[ -z "$saves" ] || save
if [ -n "$artifacts" ]; then
  rm -f "$artifacts/part.$rank"
  cp "$output" "$artifacts/part.$rank"
  chmod 444 "$artifacts/part.$rank"
fi
say "ends with $code"
note ended
exit "$code"
