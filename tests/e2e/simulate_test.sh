# Simulations from the command line: the same seed gives the same bytes, policies are compared, a
# timeline is drawn, and invalid input is rejected.
source "$(dirname "$0")/lib.sh" "$@"

generate=(--generate jobs=120,seed=4 --nodes 4 --gpus-per-node 4)
$renzan simulate "${generate[@]}" --compare fifo,backfill,backfill-easy,kubernetes,las,srpt-oracle,renzan \
  --json >a.json 2>/dev/null
$renzan simulate "${generate[@]}" --compare fifo,backfill,backfill-easy,kubernetes,las,srpt-oracle,renzan \
  --json >b.json 2>/dev/null
cmp a.json b.json
python3 - <<'PY'
import json
policies = json.load(open("a.json"))["policies"]
assert [p["policy"] for p in policies] == ["fifo", "backfill", "backfill-easy", "kubernetes",
                                           "las", "srpt-oracle", "renzan"]
for p in policies:
    assert p["jobs"] == 120 and p["never_ended"] == 0, p
    assert abs(p["useful_gpu_s"] - policies[0]["useful_gpu_s"]) < 1e-6, p
assert policies[0]["waiting"]["mean_s"] > policies[1]["waiting"]["mean_s"]
PY

$renzan simulate "${generate[@]}" --policy renzan --svg picture.svg >table.txt 2>/dev/null
grep -q '^utilisation  *[0-9.]* %$' table.txt || fail "no table"
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("picture.svg")'

{
  echo timestamp,duration,num_gpus,gpu_time,cluster
  echo 2017-10-09 07:01:55,66.0,1,66.0,a
  echo 2017-10-09 07:01:58,30.0,12,360.0,b
} >trace.csv
gzip -k trace.csv
expect_exit 0 "jobs" $renzan simulate --trace trace.csv.gz --nodes 2 --compare fifo,renzan
echo 2017-10-09 07:02,30.0,12,360.0,b >>trace.csv
expect_exit 65 "trace.csv:4: timestamp '2017-10-09 07:02'" $renzan simulate --trace trace.csv
printf 'app,at,n\nbert,0,4\nncf,30,1\n' >other.csv
printf 'submitted: at\ngpus: n\nqueue: ""\nname: app\nduration_of: {bert: 1h, ncf: 5m}\n' >columns.yaml
expect_exit 0 "jobs" $renzan simulate --trace other.csv --columns columns.yaml --nodes 2
expect_exit 65 "for other columns, see --columns" $renzan simulate --trace other.csv
sed -i 's/bert: 1h, //' columns.yaml
expect_exit 65 "app 'bert' has no duration" $renzan simulate --trace other.csv --columns columns.yaml
sed -i 's/5m/soon/' columns.yaml
expect_exit 78 "'soon' is not a duration" $renzan simulate --trace other.csv --columns columns.yaml
expect_exit 66 "no_such.csv" $renzan simulate --trace no_such.csv
expect_exit 0 "starts on" $renzan simulate "${generate[@]}" --explain 7
expect_exit 64 "has no job 999" $renzan simulate "${generate[@]}" --explain 999
expect_exit 64 "use --policy" $renzan simulate "${generate[@]}" --explain 7 --json
expect_exit 64 "did you mean backfill?" $renzan simulate "${generate[@]}" --policy backfil
expect_exit 78 "--generate foo=1: unknown key 'foo'" $renzan simulate --generate jobs=5,foo=1
expect_exit 78 "did you mean 'jobs'" $renzan simulate --generate job=5
expect_exit 64 "--trace FILE, --sacct FILE or --generate" $renzan simulate
for flag in --save --restart --checkpoint-share --limit; do
  expect_exit 64 "--generate excludes $flag" $renzan simulate "${generate[@]}" $flag 1
done
printf '%s\n' 'JobID|User|Account|Submit|ElapsedRaw|AllocTRES' \
  '1|ann|ads|2026-01-31T12:00:00|3600|cpu=8,gres/gpu=4,node=1' \
  '2|bob|ads|2026-01-31T12:00:00|1800|cpu=8,gres/gpu=8,node=1' '3|bob|ads|Unknown|0|' >jobs.txt
expect_exit 0 "left out: 1 job without GPUs" \
  $renzan simulate --sacct jobs.txt --nodes 1 --quotas none --compare renzan,fifo
expect_exit 64 "excludes" $renzan simulate --sacct jobs.txt --trace trace.csv.gz
expect_exit 64 "--limit" $renzan simulate --trace trace.csv.gz --limit 0
expect_exit 64 "--restart 60s..30s" $renzan simulate --trace trace.csv.gz --restart 60s..30s
expect_exit 64 "--notice soon: not a duration" $renzan simulate "${generate[@]}" --notice soon
printf 'pools: {own: {nodes: 2, resources: {cpu: 8, memory: 8GiB, gpu: 4}}}\n' >cluster.yaml
expect_exit 66 "--quotas" $renzan simulate --generate jobs=5 --cluster cluster.yaml
expect_exit 0 "jobs" $renzan simulate --generate jobs=5 --cluster cluster.yaml --quotas proportional
