# A daemon that runs as root serves several users: jobs run as their users, users cannot see or change
# jobs of others, other users are rejected. The daemon of an ordinary user serves nobody else.
source "$(dirname "$0")/cluster_lib.sh" "$@"
[ "$(id -u)" -eq 0 ] || skip "needs root to become other users"
command -v setpriv >/dev/null || skip "needs setpriv (util-linux)"
for user in nobody daemon games; do
  id "$user" >/dev/null 2>&1 || skip "needs a user $user"
done
chmod 755 "$work"
# The programs may be in a directory that only root can enter.
if ! setpriv --reuid nobody --regid nogroup --clear-groups test -x "$renzan"; then
  mkdir programs
  folder=$(dirname "$renzan")
  install -m 755 "$renzan" "$folder/renzan-supervisor" "$folder/../lib/librenzan_jobs.so" programs
  renzan=$work/programs/renzan
fi
export RENZAN_SOCKET=$work/socket
unset RENZAN_STATE_DIR
stop_daemons() {
  $renzan cluster down --stop-jobs 2>/dev/null || true
  $renzan cluster down --stop-jobs --socket "$work/own/socket" 2>/dev/null || true
}
trap 'stop_daemons; rm -rf "$work"' EXIT
as() {
  local user=$1
  shift
  setpriv --reuid "$user" --regid "$(id -g "$user")" --init-groups env HOME="$work/home" "$@"
}
mkdir home secrets
echo "for root's eyes" >secrets/secret
chmod 700 secrets
for user in nobody daemon; do
  install -d -m 755 -o "$user" "of_$user"
done

expect_exit 64 "no such user" $renzan cluster up --state "$work/state" --allow-user nobdy
[ ! -e state ] || fail "a state directory was created"
$renzan cluster up --state "$work/state" --nodes 2 --gpus-per-node 2 --simulated \
  --allow-user nobody --allow-user daemon >/dev/null

# Jobs run as their users, with their groups and in their own directories.
cd of_nobody
expect_exit 0 "" as nobody "$renzan" submit --wait -- sh -c \
  'id -un; echo private >"$RENZAN_RUN_DIR/file"; echo saved >"$RENZAN_CHECKPOINT_DIR/file"'
as nobody "$renzan" job logs 1 >logs.txt
[ "$(cat logs.txt)" = nobody ] || fail "job 1 ran as $(cat logs.txt)"
[ "$(as nobody cat "$work/state/jobs/1/run/file")" = private ] || fail "nobody cannot read the file of its own job"
cd ../of_daemon
expect_exit 0 "daemon" as daemon "$renzan" submit --follow -- id -un
grep -q private <<<"$(as nobody "$renzan" job show 1 --json)" || fail "the owner does not see the specification"

# Users cannot read what belongs to others, neither through the daemon nor in the file system...
expect_exit 77 "job 1 belongs to nobody" as daemon "$renzan" job logs 1
expect_exit 77 "job 2 belongs to daemon" as nobody "$renzan" job logs 2
as daemon "$renzan" job show 1 --json >shown.json
! grep -q private shown.json || fail "the command of another user is shown"
for path in state.db daemon.log jobs jobs/1/run jobs/1/run/file jobs/1/checkpoints/file \
  jobs/1/attempt-0 jobs/1/attempt-0/worker-0.log; do
  [ -e "$work/state/$path" ] || fail "no $path"
  if as daemon cat "$work/state/$path" >/dev/null 2>&1; then fail "daemon can read $path"; fi
  if as daemon ls "$work/state/$path/" >/dev/null 2>&1; then fail "daemon can list $path"; fi
done
if as nobody cat "$work/state/state.db" >/dev/null 2>&1; then fail "nobody can read state.db"; fi
# What only the daemon reads goes with the job, and so do empty directories.
[ "$(ls "$work/state/jobs/1/attempt-0")" = worker-0.log ] ||
  fail "kept: $(ls "$work/state/jobs/1/attempt-0")"
[ ! -e "$work/state/jobs/1/artifacts" ] || fail "an empty directory was kept"

# ... nor stop or change it, except for root.
cd ../of_nobody
sleeper=$(as nobody "$renzan" submit --checkpoints -- sleep 1000)
has_plan() { [ -e "$work/state/jobs/$1/attempt-0/plan.json" ]; }
wait_for has_plan "$sleeper"
for user in nobody daemon; do
  if as $user cat "$work/state/jobs/$sleeper/attempt-0/plan.json" >/dev/null 2>&1; then
    fail "$user can read the plan of job $sleeper"
  fi
done
if as daemon ls "$work/state/jobs/$sleeper/artifacts/" >/dev/null 2>&1; then
  fail "daemon can list the artifacts of job $sleeper"
fi
[ -e "$work/state/inherited/$sleeper.json" ] || fail "what it inherits is not kept"
for user in nobody daemon; do
  if as $user cat "$work/state/inherited/$sleeper.json" >/dev/null 2>&1; then
    fail "$user can read what job $sleeper inherits"
  fi
done
for verb in cancel preempt checkpoint; do
  expect_exit 77 "belongs to nobody" as daemon "$renzan" job $verb "$sleeper"
done
for verb in "nodes drain local-0" "nodes fail local-0" "nodes restore local-0" \
  "cluster override daemon --max-gpus 4 --for 1h" "cluster down"; do
  expect_exit 77 "" as daemon "$renzan" $verb
done
is "$sleeper" state running || fail "job $sleeper was stopped by another user"
$renzan job cancel "$sleeper" >/dev/null
wait_for is "$sleeper" state cancelled

# Users cannot put their jobs before everybody else's.
expect_exit 77 "priority 1: in queue 'default', jobs of user 'nobody' may have at most 0" \
  as nobody "$renzan" submit --priority 1 -- true
expect_exit 77 "you may not stop everybody's jobs" \
  as nobody "$renzan" submit --set grand_challenge=true -- true
expect_exit 77 "you may not stop everybody's jobs" as nobody "$renzan" cluster challenge -- true
! grep -q "jobs that stop" out.txt || fail "the plan of what may not be done: $(cat out.txt)"
expect_exit 0 "jobs that stop" as nobody "$renzan" cluster challenge --plan-only -- true
job=$($renzan submit --priority 101 -- true)
wait_for is "$job" state done

# Users that are not allowed are rejected.
for verb in "jobs" "job show 1" "submit -- id"; do
  expect_exit 77 "" as games "$renzan" $verb
done

# Jobs cannot make root follow links, and artifacts are collected with the user's permissions.
cat >attack.sh <<'SH'
for name in worker-0.log plan.json end.json started.json requests/0; do
  ln -sf "$1/victim" "$RENZAN_ATTEMPT_DIR/$name" 2>/dev/null && echo "placed $name"
done
mv "$RENZAN_ATTEMPT_DIR" "$RENZAN_ATTEMPT_DIR.moved" 2>/dev/null && echo "moved"
mkdir out
ln -s "$1/secret" out/link
ln "$1/secret" out/hard 2>/dev/null && echo "hard link"
ln -s "$1" out/all
ln -sf "$1/secret" "$RENZAN_RUN_DIR/status.json"
rmdir "$RENZAN_RUN_DIR/../artifacts" 2>/dev/null && echo "removed artifacts"
echo mine >out/mine
SH
expect_exit 0 "" as nobody "$renzan" submit --wait --artifacts out -- sh attack.sh "$work/secrets"
job=$(cat out.txt)
as nobody "$renzan" job logs "$job" >logs.txt
[ ! -s logs.txt ] || fail "the job could: $(cat logs.txt)"
kept=$work/state/jobs/$job/artifacts
[ "$(cat "$kept/out/mine")" = mine ] || fail "no artifacts"
[ -z "$(find "$work/state/jobs/$job" -type f -exec grep -l "root's eyes" {} +)" ] || fail "a leak"
[ ! -e "$work/secrets/victim" ] || fail "root followed a link"
rm -rf out
ln -s "$work/secrets" out
expect_exit 0 "" as nobody "$renzan" submit --wait --artifacts out -- true
job=$(cat out.txt)
[ -z "$(find "$work/state/jobs/$job" -type f -exec grep -l "root's eyes" {} +)" ] || fail "a leak"
expect_exit 126 "" as nobody "$renzan" submit --wait --set "working_directory=$work/secrets" -- true
$renzan cluster down --stop-jobs 2>/dev/null

# Old jobs are deleted with their directories, whatever their users have put there.
cat >"$work/short.yaml" <<'YAML'
pools: {own: {nodes: 1, resources: {cpu: 4}}}
retention: {keep_ended_for: 2s}
YAML
$renzan cluster up "$work/short.yaml" --state "$work/short" --allow-user nobody >/dev/null
cd ../of_nobody
expect_exit 0 "" as nobody "$renzan" submit --wait -- sh -c 'cd "$RENZAN_RUN_DIR" &&
  mkdir -p deep/er && ln -s "$1" all && ln -s "$1/secret" deep/secret && chmod 0 deep' sh "$work/secrets"
is_deleted() { ! $renzan job show 1 >/dev/null 2>&1; }
wait_for is_deleted
expect_exit 66 "there is no job 1" $renzan job show 1
[ ! -e "$work/short/jobs/1" ] || fail "its directory still exists"
[ -s "$work/secrets/secret" ] || fail "root followed a link"
grep -q '^nobody' <<<"$($renzan cluster usage)" || fail "its usage was lost"
$renzan cluster down 2>/dev/null
$renzan cluster up "$work/short.yaml" --state "$work/short" --allow-user nobody >/dev/null
[ "$(as nobody "$renzan" submit -- true)" = 2 ] || fail "an id was reused"
$renzan cluster down --stop-jobs 2>/dev/null

# Queues take jobs of their members, by user or by one of the user's groups, up to their priority.
cat >"$work/queues.yaml" <<YAML
pools: {own: {nodes: 1, resources: {cpu: 4}}}
queues:
  default: {}
  theirs: {members: {users: [nobody]}, max_priority: 10}
  group: {members: {groups: [$(id -gn daemon)]}}
YAML
$renzan cluster up "$work/queues.yaml" --state "$work/queues" --allow-user nobody \
  --allow-user daemon >/dev/null
cd ../of_nobody
expect_exit 0 "" as nobody "$renzan" submit --wait --queue theirs --priority 10 -- true
expect_exit 77 "may have at most 10 (queues.theirs.max_priority)" \
  as nobody "$renzan" submit --queue theirs --priority 11 -- true
expect_exit 77 "queue 'group' is for its members, and user 'nobody' is none of them" \
  as nobody "$renzan" submit --queue group -- true
expect_exit 77 "use default or theirs, or ask the operator" \
  as nobody "$renzan" submit --queue group -- true
cat >job.yaml <<'YAML'
queue: group
command: ["true"]
YAML
expect_exit 77 "queue 'group' is for its members" \
  as nobody "$renzan" cluster what-if --submit job.yaml
expect_exit 0 "" as daemon "$renzan" submit --wait --queue group -- true
expect_exit 77 "queue 'theirs' is for its members" as daemon "$renzan" submit --queue theirs -- true
expect_exit 77 "queue 'theirs' is for its members" \
  as daemon "$renzan" submit --again 2 --queue theirs
expect_exit 0 "" $renzan submit --wait --queue theirs --priority 99 -- true
$renzan cluster status >status.txt
grep -Eq "^theirs .* 10 +nobody$" status.txt || fail "the status does not show members"
grep -Eq "^default .* 0 +everybody$" status.txt || fail "the status does not show who may use default"
$renzan cluster down --stop-jobs 2>/dev/null

# With fair share, whoever has used less of a queue goes first, also after a restart of the daemon.
cat >"$work/fair.yaml" <<'YAML'
pools: {own: {nodes: 1, resources: {gpu: 1}}}
queues: {fair: {fair_share: {half_life: 1h}}}
simulated: true
YAML
up_fair() {
  $renzan cluster up "$work/fair.yaml" --state "$work/fair" --allow-user nobody --allow-user daemon \
    >/dev/null
}
up_fair
cd ../of_nobody
as nobody "$renzan" submit --queue fair --gpus 1 -- sleep 6 >/dev/null    # 1
as nobody "$renzan" submit --queue fair --gpus 1 -- sleep 60 >/dev/null   # 2
cd ../of_daemon
sleep 1
as daemon "$renzan" submit --queue fair --gpus 1 -- sleep 60 >/dev/null  # 3
$renzan job explain 2 | grep -Eq "^ahead by fair share: job 3 of daemon, who has used 0 GPU hours of queue fair" ||
  fail "explain does not say who is ahead: $($renzan job explain 2)"
$renzan cluster usage | grep -Eq "^fair +1h00m +nobody +0.* gpu-hours$" || fail "$($renzan cluster usage)"
$renzan cluster down 2>/dev/null
up_fair
for ((i = 0; i < 60; ++i)); do
  state=$($renzan job show 3 --json | sed -n 's/^  "state": "\(.*\)",$/\1/p')
  [ "$state" = pending ] || break
  sleep 0.5
done
[ "$state" = running ] || fail "job 3 is $state"
$renzan jobs | grep -Eq "^ *2 .* pending " || fail "job 2 does not wait"
$renzan cluster down --stop-jobs 2>/dev/null
sed 's/users: \[nobody\]/users: [nobdy]/' "$work/queues.yaml" >"$work/wrong.yaml"
expect_exit 78 "nobody could use queue 'theirs'" \
  $renzan cluster up "$work/wrong.yaml" --state "$work/queues" --allow-user nobody

# The daemon of an ordinary user serves only that user and root.
cd "$work"
install -d -m 755 -o nobody own
expect_exit 64 "root" as nobody "$renzan" cluster up --state "$work/own/state" \
  --socket "$work/own/socket" --allow-user daemon
as nobody "$renzan" cluster up --state "$work/own/state" --socket "$work/own/socket" >/dev/null
expect_exit 77 "" as daemon "$renzan" jobs --socket "$work/own/socket"
expect_exit 77 "" as daemon "$renzan" submit --socket "$work/own/socket" -- id
cd own
expect_exit 0 "nobody" as nobody "$renzan" submit --socket "$work/own/socket" --follow -- id -un
$renzan jobs --all --socket "$work/own/socket" >/dev/null
