# A job has the environment, umask, limits and niceness of its submitter, not those of the daemon: in
# every attempt, and nowhere that others can read.
source "$(dirname "$0")/cluster_lib.sh" "$@"
unset RANK RENZAN_JOB_ID
env -i PATH=/usr/bin:/bin HOME=/nowhere OF_DAEMON=yes RENZAN_STATE_DIR="$RENZAN_STATE_DIR" \
  sh -c 'umask 077; ulimit -n 512; ulimit -Sc 0; exec "$@"' sh \
  "$renzan" cluster up --nodes 2 >/dev/null

mkdir -p venv/bin
printf '#!/bin/sh\necho the program of the virtual environment\n' >venv/bin/in_venv
chmod +x venv/bin/in_venv
export PATH=$work/venv/bin:$PATH TOKEN=secret-9f3 GREETING='hello
world'
output() { $renzan submit --wait "$@" >id.txt 2>err.txt && $renzan job logs "$(head -1 id.txt)"; }

echo "== The submitter's environment"
[ "$(output -- in_venv)" = "the program of the virtual environment" ] || fail "PATH is ignored: $(cat err.txt)"
$renzan job show 1 --json >shown.json
python3 - "$work" <<'PY' || fail "the manifest: $(cat shown.json)"
import json, sys
manifest = json.load(open("shown.json"))["manifest"]
assert manifest["program"] == sys.argv[1] + "/venv/bin/in_venv", manifest["program"]
assert {"PATH", "TOKEN", "GREETING"} <= set(manifest["exported"]), manifest["exported"]
PY
! grep -q secret-9f3 shown.json || fail "a value is shown"
[ "$(output -- sh -c 'echo "$GREETING $OF_DAEMON $HOME"')" = "$GREETING  $HOME" ] || fail "not of the submitter"
# What says where the submitter runs is its own.
[ "$(RANK=3 RENZAN_JOB_ID=77 output -- sh -c 'echo "${RANK-none} $RENZAN_JOB_ID"')" = "none 3" ] ||
  fail "it has variables of another job"
[ "$(output --set 'environment={GREETING: hi}' -- sh -c 'echo "$GREETING"')" = hi ] || fail "not its own variable"

echo "== --export"
[ "$(output --export NONE -- sh -c 'echo "$TOKEN $PATH"')" = \
  " /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" ] || fail "NONE exports"
[ "$(output --export TOKEN -- sh -c 'echo "$TOKEN $GREETING"')" = "secret-9f3 " ] || fail "not TOKEN alone"
printf 'command: [sh, -c, "echo $TOKEN $GREETING"]\nexport: GREETING\n' >job.yaml
[ "$(output job.yaml)" = "hello world" ] || fail "export is not a key of the job"
expect_exit 64 "export: TOEKN is not set here" $renzan submit --export TOEKN -- true
expect_exit 78 "export must be ALL, NONE or names" $renzan submit --export A=1 -- true

echo "== umask, limits, niceness"
[ "$(umask 027; ulimit -Sn 100; output -- sh -c 'umask; ulimit -Sn; nice')" = "0027
100
$(nice)" ] || fail "not the submitter's"
[ "$(nice -n 3 bash -c "$(declare -f output); renzan='$renzan'; output -- nice")" = $(($(nice) + 3)) ] ||
  fail "not the submitter's niceness"
(ulimit -Sn 600; output -- sh -c 'ulimit -n') >limit.txt
[ "$(cat limit.txt)" = 512 ] || fail "above the daemon's hard limit: $(cat limit.txt)"
grep -qF "limit of nofile will be 512, the daemon's, instead of 600" err.txt || fail "it is not said: $(cat err.txt)"

echo "== Kept for later attempts and daemons, then removed"
id=$($renzan submit --retries 1 --set retry_backoff=1s -- sh -c \
  'echo "$TOKEN"; test "$RENZAN_ATTEMPT" = 1 || { until [ -e restarted ]; do sleep 0.05; done; exit 3; }')
[ "$(stat -c %a state/inherited "state/inherited/$id.json" | tr '\n' ' ')" = "700 600 " ] || fail "modes"
$renzan cluster down >/dev/null
TOKEN=other $renzan cluster up --nodes 2 >/dev/null
touch restarted
wait_for is "$id" state done
for attempt in 0 1; do
  [ "$($renzan job logs "$id" --attempt $attempt)" = secret-9f3 ] || fail "attempt $attempt has another environment"
done
[ -z "$(ls state/inherited)" ] || fail "kept: $(ls state/inherited)"
! grep -rq secret-9f3 state --exclude='worker-*.log*' || fail "kept: $(grep -rl secret-9f3 state)"
