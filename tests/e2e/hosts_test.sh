# Two to four hosts (network namespaces), over Gloo and over Open MPI's TCP, on a shaped network:
# the SHA-256 of a single worker. Workers know which of them share a host.
source "$(dirname "$0")/lib.sh" "$@"
source "$here/hosts_lib.sh"
can_make_hosts || skip "network namespaces need root"
$renzan data synth --format dataset --seed 6 --rows 4000 --multi-hot 3 --output data >/dev/null
small_config data
blocks=(--set numerics.row_blocks=8 --set numerics.column_blocks=2 --set training.max_steps=8
  --set comm.forward=fp16 --set optimizer.sparse.type=rowwise_adagrad)
$renzan train small.yaml --run-dir one "${blocks[@]}" 2>log.txt || fail "$(cat log.txt)"
expected=$(sha256_of one)

# Hosts, and the shardings of Gloo's runs with two workers on each; MPI's runs have one worker.
declare -A shardings=([2]="column_wise" [3]="table_row_wise"
  [4]="auto row_wise table_row_wise replicated")
expect_hosts() {  # NAME...
  local are
  are=$(python3 -c 'import json; print(*json.load(open("run/manifest.json"))["hosts"])')
  [ "$are" = "$*" ] || fail "hosts are $are, not $*"
}
# mpirun starts its daemons on the other hosts with this instead of ssh.
cat >agent <<AGENT
#!/bin/sh
host=\${1##*.}
shift
exec ip netns exec $hosts_prefix-host\$((host - 1)) unshare -u sh -c "hostname host\$((host - 1)); \$*"
AGENT
chmod +x agent
for count in 4 3 2; do
  hosts_up $count 1gbit
  names=$(seq -f host%g 0 $((count - 1)))
  for sharding in ${shardings[$count]}; do
    rm -rf run
    train_on_hosts 2 small.yaml --run-dir run "${blocks[@]}" --set sharding.default=$sharding ||
      fail "$count hosts, $sharding: $(cat log.txt)"
    [ "$(sha256_of run)" = "$expected" ] || fail "$count hosts, $sharding: another model"
    expect_hosts $(for name in $names; do echo $name $name; done)
  done
  if command -v mpirun >/dev/null; then
    rm -rf run
    on_host 0 mpirun --allow-run-as-root -n $count \
      --host "$(seq -s, -f 10.77.0.%g:1 $count)" \
      --mca plm rsh --mca plm_rsh_agent "$work/agent" --mca orte_keep_fqdn_hostnames 1 \
      --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include eth0 \
      --mca oob_tcp_if_include eth0 --bind-to none \
      $renzan train "$work/small.yaml" --run-dir "$work/run" --threads 1 "${blocks[@]}" \
      --set data.train.path="$work/data" --set data.eval.path="$work/data" >log.txt 2>&1 ||
      fail "mpi on $count hosts: $(cat log.txt)"
    grep -q "(mpi" log.txt || fail "$(cat log.txt)"
    [ "$(sha256_of run)" = "$expected" ] || fail "mpi on $count hosts: another model"
    expect_hosts $names
  fi
  [ $count = 2 ] || hosts_down
done
command -v mpirun >/dev/null || exit 0

# Measures each transport between two hosts, which Open MPI learns from its own variables.
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$work/agent OMPI_MCA_orte_keep_fqdn_hostnames=1 \
  OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0
on_host 0 $renzan bench machine --peers --hosts 10.77.0.1,10.77.0.2 --json >peers.json ||
  fail "bench machine --peers: $(cat peers.json)"
python3 - <<'PY' || fail "$(cat peers.json)"
import json
by_name = {one["name"]: one for one in json.load(open("peers.json"))["transports"]}
assert "MPI, shared memory" not in by_name
for name in ("Gloo, TCP", "MPI, TCP"):
    seconds = by_name[name]["seconds"]
    # 4 MiB each way at 1 Gbit/s take at least 33 ms.
    assert 0.03 < seconds["4194304"] < 10 and seconds["64"] < seconds["4194304"], by_name
PY
