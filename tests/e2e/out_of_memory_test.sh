# Workers that the kernel kills because memory ran out: the reason is told, and a restart has as
# many workers, because fewer would need more memory each. Needs a control group of its own.
source "$(dirname "$0")/lib.sh" "$@"
limit=$((160 << 20))
group=""
end_group() { # the group is empty when its processes have been reaped
  [ -z "$group" ] || for _ in $(seq 100); do rmdir "$group" 2>/dev/null && break || sleep 0.1; done
}
trap '[ -z "$launcher" ] || kill -KILL "$launcher" || true; end_group; rm -rf "$work"' EXIT
make_group() { # PARENT FILE FILE-OF-SWAP LIMIT
  [ -d "$1" ] && mkdir "$1/renzan-test-$$" 2>/dev/null || return 1
  group=$1/renzan-test-$$
  # Without swap, or it would be used first.
  if echo $limit 2>/dev/null >"$group/$2" &&
    { [ "$(wc -l </proc/swaps)" -le 1 ] || echo $4 2>/dev/null >"$group/$3"; }; then return; fi
  end_group
  group=""
  return 1
}
v1=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
v2=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
make_group "${v1:-/nowhere}" memory.limit_in_bytes memory.memsw.limit_in_bytes $limit ||
  make_group "${v2:-/nowhere}" memory.max memory.swap.max 0 ||
  skip "may not make a control group that limits memory"
in_group() { # COMMAND...
  bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}
$renzan data synth --format dataset --seed 1 --rows 2000 --rows-per-table 800000 --output data >/dev/null
cat >small.yaml <<YAML
data: {train: {path: data}}
model: {embedding_dim: 16, bottom_mlp: [16], top_mlp: [16]}
training: {batch_size: 256}
elastic: {min: 1, max_restarts: 1, backoff_seconds: 0.1}
YAML

expect_exit 71 "in the cgroup" in_group $renzan train small.yaml --run-dir run --workers 2 \
  --backend gloo
expect_exit 69 "because memory ran out" in_group $renzan train small.yaml --run-dir run --workers 2 \
  --backend gloo --set check_memory=false
grep -q "because memory ran out.*: restarting with 2 workers" out.txt || fail "$(cat out.txt)"
[ ! -e run/model ] || fail "it fits: the limit is too high for this test"
