# A job fills the disk of the state directory: the cluster goes on, says so, and the job can be
# cancelled. With disk.max_per_job it is killed before.
source "$(dirname "$0")/cluster_lib.sh" "$@"
[ "$(id -u)" -eq 0 ] || skip "needs root to mount a small file system"
export RENZAN_STATE_DIR=$work/small/state
trap '$renzan cluster down --stop-jobs >/dev/null 2>&1 || true; umount "$work/small" 2>/dev/null || true
  rm -rf "$work"' EXIT
mkdir small
# A real file system if possible: blocks beyond a file's end are its own affair.
mount_ext4() {
  truncate -s 64M disk.img && mkfs.ext4 -q -m 0 -b 1024 disk.img && mount -o loop disk.img small
}
mount_ext4 2>/dev/null || mount -t tmpfs -o size=64m tmpfs small 2>/dev/null ||
  skip "cannot mount a small file system here"
cat >cluster.yaml <<'YAML'
pools: {own: {nodes: 2, resources: {cpu: 8, gpu: 2}}}
disk: {keep_free: 16MiB}
simulated: true
YAML
up() { $renzan cluster up cluster.yaml "$@" >/dev/null; }
up
filler='while :; do dd if=/dev/zero of=$RENZAN_RUN_DIR/$$.$(date +%N) bs=64k 2>/dev/null; sleep 0.02; done'

other=$($renzan submit --gpus 1 -- sh -c 'until [ -e go ]; do sleep 0.05; done; exit 6')
filling=$($renzan submit --gpus 1 -- sh -c "until [ -e fill ]; do sleep 0.05; done; $filler")
waiting=$($renzan submit --gpus 2 --replicas 2 -- true)
touch fill
is_full() { [ "$(df --output=avail small | tail -1)" -eq 0 ]; }
wait_for is_full
is "$filling" state running || fail "job $filling no longer runs"

# What ends is recorded, and everybody can see what is going on.
expect_exit 74 "less than the 16MiB of disk.keep_free" $renzan submit -- true
touch go
wait_for is "$other" state failed
expect_field "$other" exit_code 6
names_it() { grep -q "^DISK NEARLY FULL: .*; job $filling uses [0-9.]*MiB" <<<"$($renzan cluster status)"; }
wait_for names_it
grep -q "^20[-0-9]*T[:0-9]*Z warning: .*has .* free, less than the 16MiB" "$RENZAN_STATE_DIR/daemon.log" ||
  fail "the daemon's log does not say it"
grep -q "job system  *limited .*less than the 16MiB" <<<"$($renzan doctor --dir "$work")" ||
  fail "renzan doctor does not say it"
expect_explanation "$waiting" "disk of the daemon's state directory is nearly full"
is "$filling" state running || fail "job $filling no longer runs"

# Two daemons later as well, one of which is killed.
kill -KILL "$($renzan cluster status --json |
  python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')"
up
$renzan cluster down >/dev/null
up
wait_for is_full
$renzan job cancel "$filling" >/dev/null
wait_for is "$filling" state cancelled
expect_exit 74 "disk.keep_free" $renzan submit -- true
rm "$RENZAN_STATE_DIR/jobs/$filling/run/"*
wait_for is "$waiting" state 'done'
expect_exit 0 "" $renzan submit --wait -- true
grep -q "NEARLY FULL" <<<"$($renzan cluster status)" && fail "the status still says that the disk is full"

# A limit for each job.
$renzan cluster down >/dev/null
up --set disk.max_per_job=12MiB
reason="in the state directory took [0-9.]*MiB, more than the 12MiB that a job may have there"
status=0
$renzan submit --wait -- sh -c "$filler" >id.txt 2>log.txt || status=$?
[ $status -eq 137 ] || { cat log.txt >&2; fail "exit $status of a job that wrote too much"; }
grep -q "$reason" log.txt || fail "submit --wait gives no reason"
filling=$(cat id.txt)
expect_field "$filling" state failed
grep -q "$reason" <<<"$($renzan job show "$filling")" || fail "job show gives no reason"
grep -q "$reason" <<<"$($renzan job explain "$filling")" || fail "explain gives no reason"
rm "$RENZAN_STATE_DIR/jobs/$filling/run/"*
expect_exit 0 "" $renzan submit --wait -- \
  sh -c 'dd if=/dev/zero of=$RENZAN_RUN_DIR/file bs=1M count=8 2>/dev/null; sleep 2'
