# A job can open the GPUs that it was given and no others, and counts them from 0. Memory devices
# stand in for GPUs, in a /dev of the test's own.
if [ -z "${RENZAN_OWN_MOUNTS:-}" ]; then
  probe=$(mktemp -u)
  unshare --mount mknod "$probe" c 1 5 2>/dev/null || { echo "skipped: needs root"; exit 77; }
  rm "$probe"
  RENZAN_OWN_MOUNTS=1 exec unshare --mount bash "$0" "$@"
fi
source "$(dirname "$0")/cluster_lib.sh" "$@"
mkdir dev
mount -t tmpfs -o mode=755 none dev || skip "nothing can be mounted here"
cp -a /dev/{null,zero,full,random,urandom,fd,stdin,stdout,stderr} dev
mkdir dev/shm
mknod dev/nvidia0 c 1 5
mknod dev/nvidia1 c 1 7
mknod dev/nvidiactl c 1 8
mount --move dev /dev
cat >cluster.yaml <<'YAML'
pools: {own: {resources: {cpu: 4, gpu: 2}}}
YAML
up() { $renzan cluster up cluster.yaml "$@" >/dev/null; }
says() { grep -qF -- "$1" "$RENZAN_STATE_DIR/daemon.log"; }

# Says which it can open, and runs until there is the file.
cat >look.sh <<'SH'
opened=$(for gpu in 0 1 ctl; do (: </dev/nvidia$gpu) 2>/dev/null && echo "$gpu"; done | xargs)
echo "opens: $opened; visible: $CUDA_VISIBLE_DEVICES" >"$1.txt.new"
mv "$1.txt.new" "$1.txt"
until [ -z "$2" ] || [ -e "$2" ]; do sleep 0.05; done
SH
# expect_seen NAME WHAT
expect_seen() {
  wait_for [ -e "$1.txt" ]
  [ "$(cat "$1.txt")" = "$2" ] || fail "$1: $(cat "$1.txt")"
}

up
says "keep jobs from GPUs that they are not given" || fail "the daemon's log says nothing"
! says "no control groups keep jobs from GPUs" || skip "$(cat "$RENZAN_STATE_DIR/daemon.log")"
first=$($renzan submit --gpus 1 -- sh look.sh first enough)
expect_seen first "opens: 0 ctl; visible: 0"
second=$($renzan submit --gpus 1 -- sh look.sh second enough)
expect_seen second "opens: 1 ctl; visible: 0"
none=$($renzan submit -- sh look.sh none enough)
expect_seen none "opens: ctl; visible: "
touch enough
for id in $first $second $none; do
  wait_for is "$id" state 'done'
  [ ! -s "$RENZAN_STATE_DIR/jobs/$id/attempt-0/supervisor.log" ] ||
    fail "$(cat "$RENZAN_STATE_DIR/jobs/$id/attempt-0/supervisor.log")"
done
$renzan submit --wait --gpus 2 -- sh look.sh both "" >/dev/null 2>&1
expect_seen both "opens: 0 1 ctl; visible: 0,1"
cat >gang.yaml <<'YAML'
command: [sh, -c, "sh look.sh worker-$RANK enough"]
replicas: 2
resources: {gpu: 1}
YAML
rm enough
gang=$($renzan submit gang.yaml)
expect_seen worker-0 "opens: 0 1 ctl; visible: 0"
expect_seen worker-1 "opens: 0 1 ctl; visible: 1"
touch enough
wait_for is "$gang" state 'done'
$renzan cluster down >/dev/null

# Where it cannot, the daemon says so, and only the variable is left.
rm enough
mount -t tmpfs none /sys/fs/cgroup
up
says "no control groups keep jobs from GPUs that they are not given: " || fail "no reason"
$renzan submit --gpus 1 -- sh look.sh free enough >/dev/null
expect_seen free "opens: 0 1 ctl; visible: 0"
$renzan submit --wait --gpus 1 -- sh look.sh other "" >/dev/null 2>&1
expect_seen other "opens: 0 1 ctl; visible: 1"
touch enough
