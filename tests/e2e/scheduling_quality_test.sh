# The scheduler's quality on the first 12,000 jobs of a recorded trace, on too few nodes. Waiting
# times in a simulation are exact, so a change that makes them worse fails here; the bounds are a
# sixth above what was measured.
source "$(dirname "$0")/lib.sh" "$@"

trace=$source_root/../shared/traces/philly/philly.csv.gz
[ -f "$trace" ] || skip "no $trace"

for share in 1 0.5 0; do
  $renzan simulate --trace "$trace" --limit 12000 --nodes 56 --restart 60s \
    --checkpoint-share $share --compare renzan,backfill --json >$share.json 2>/dev/null
done
python3 - <<'PY'
import json

# Mean waiting in hours, by the share of jobs that save their work.
MOST = {"1": {"all": 2.4, "1": 0.62, "2-7": 6.8, "8": 54, ">=16": 102},
        "0.5": {"all": 2.8, "1": 0.34, "2-7": 7.2, "8": 85, ">=16": 82},
        "0": {"all": 13.5, "1": 8.2, "2-7": 49, "8": 159, ">=16": 121}}
IDLE = {"1": 0.003, "0.5": 0.009, "0": 0.0185}  # while jobs wait
failed = []


def check(what, value, most):
    if value > most:
        failed.append(f"{what}: {value:.3f}, at most {most} expected")


for share, bounds in MOST.items():
    ours, backfill = json.load(open(f"{share}.json"))["policies"]
    waits = {each["gpus"]: each["waiting"]["mean_s"] / 3600 for each in ours["by_size"]}
    waits["all"] = ours["waiting"]["mean_s"] / 3600
    for name, most in bounds.items():
        check(f"share {share}, mean waiting in hours, {name} GPUs", waits[name], most)
    for each in backfill["by_size"]:
        if share == "0" and each["gpus"] == "8":
            continue  # they make room for shorter and for larger ones
        check(f"share {share}, waiting against backfill's, {each['gpus']} GPUs",
              waits[each["gpus"]], each["waiting"]["mean_s"] / 3600)
    check(f"share {share}, lost and repeated", ours["lost_share"], 0)
    check(f"share {share}, saving and restarting", ours["overhead_share"], 0.003)
    check(f"share {share}, idle while jobs wait", ours["idle_while_waiting"], IDLE[share])
assert not failed, "\n".join(failed)
PY
