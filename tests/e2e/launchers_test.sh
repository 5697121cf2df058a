# The same bits with --workers, mpirun, and torchrun's environment variables set by hand.
source "$(dirname "$0")/lib.sh" "$@"
$renzan data synth --format dataset --seed 7 --rows 4000 --output data >/dev/null
small_config data
$renzan train small.yaml --run-dir one 2>/dev/null
expected=$(sha256_of one)

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
for rank in 0 1 2; do
  RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    $renzan train small.yaml --run-dir by_hand >log.$rank 2>&1 &
  pids[rank]=$!
done
for rank in 0 1 2; do
  wait "${pids[rank]}" || { cat log.*; fail "rank $rank by hand"; }
done
[ "$(sha256_of by_hand)" = "$expected" ] || fail "different bits by hand"

command -v mpirun >/dev/null || skip "no mpirun; the rest passed"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 --oversubscribe \
  --bind-to none $renzan train small.yaml --run-dir mpirun >log.txt 2>&1 ||
  { cat log.txt; fail "mpirun"; }
[ "$(sha256_of mpirun)" = "$expected" ] || fail "different bits under mpirun"
