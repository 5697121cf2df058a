#!/bin/sh
# Stands in for a worker and keeps a ledger of what it did, for those who judge the job system.
#
#   stand_in.sh LEDGER STEPS CODE [saves] [loud] [orphan] [fails=N] [artifacts=DIR]
#
# Goes STEPS steps and ends with CODE. saves: obeys the launch contract, so each step is done once.
# loud: many lines at every step. orphan: leaves a process in a session of its own behind. fails=N:
# ends with 3 before its last step, N times, and then no more.
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

# One write of one line, so that lines of several workers stay whole.
note() {
  printf '%s %s %s %s %s\n' "$RENZAN_JOB_ID" "$RENZAN_ATTEMPT" "$rank" $$ "$1" >>"$ledger/notes"
}
note begin

# Nobody else is this worker of this job, or has its devices. Held to the end by whatever is ours.
exec 4>>"$ledger/locks/job-$RENZAN_JOB_ID-$rank"
flock -n 4 || note overlap-job
fd=5
for device in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
  eval "exec $fd>>\"$ledger/locks/device-$RENZAN_NODE-$device\""
  flock -n $fd || note "overlap-device-$RENZAN_NODE-$device"
  fd=$((fd + 1))
done

said=$RENZAN_RUN_DIR/said.$RENZAN_ATTEMPT.$rank
say() {
  printf '%s\n' "$1" >>"$said"
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
  cp "$said" "$artifacts/part.$rank"
  chmod 444 "$artifacts/part.$rank"
fi
say "ends with $code"
note ended
exit "$code"
