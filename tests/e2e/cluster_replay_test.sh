# Recorded scheduling cycles are decided again: the same decisions, listed and explained; changed,
# cut, damaged and later recordings are reported.
source "$(dirname "$0")/cluster_lib.sh" "$@"

$renzan simulate --generate jobs=60,seed=4 --nodes 3 --gpus-per-node 4 --record cycles.zst \
  >/dev/null 2>&1
expect_exit 0 "cycles replayed: the same decisions" $renzan cluster replay cycles.zst
grep -q 'start *job 1 .*fits' out.txt || fail "the first start is not listed"
grep -q ' for job [0-9]*, level 0 before 1' out.txt || fail "no preemption says for whom"

# A check of each cycle does not count as a cycle.
$renzan simulate --generate jobs=60,seed=4 --nodes 3 --gpus-per-node 4 --record checked.zst --check \
  >/dev/null 2>&1
cmp cycles.zst checked.zst

$renzan cluster replay cycles.zst --json >all.json
python3 - <<'PY'
import json
all = json.load(open("all.json"))
assert all["same"] and all["program"].startswith("renzan ") and all["writer"] == "simulate", all
stopped = None
for cycle in all["cycles"]:
    assert cycle["same"] and cycle["difference"] == "", cycle
    for decision in cycle["decisions"]:
        assert decision["cycle"] == cycle["cycle"] and decision["cause"]["reason"], decision
        if decision["decision"] == "stop" and decision["cause"]["on_behalf_of"]:
            stopped = stopped or decision
open("stopped", "w").write(f"{stopped['job']['id']} {stopped['cycle']}"
                           f" {stopped['cause']['on_behalf_of']['id']}\n")
PY
read -r job cycle other <stopped
expect_exit 0 "for job $other" $renzan cluster replay cycles.zst --explain "$job"
expect_exit 0 "in cycle $cycle: it has" $renzan cluster replay cycles.zst --explain "$job" --cycle "$cycle"
# The other job waits for that in the same cycle.
expect_exit 0 "other jobs are about to be stopped for it" $renzan cluster replay cycles.zst --explain "$other" --cycle "$cycle"
$renzan cluster replay cycles.zst --explain "$other" --cycle "$cycle" --json |
  python3 -c 'import json, sys; assert json.load(sys.stdin)["explanation"]["would_start_with"]'

expect_exit 64 "no job of cycles.zst is called 'nobody'" $renzan cluster replay cycles.zst --explain nobody
expect_exit 64 "has no cycle 999999" $renzan cluster replay cycles.zst --cycle 999999
expect_exit 66 "no_such.zst" $renzan cluster replay no_such.zst
expect_exit 64 "--record works with the policy renzan only" $renzan simulate --generate jobs=5 \
  --policy fifo --record x.zst
echo hello >text
expect_exit 65 "text is not a recording" $renzan cluster replay text
head -c 20000 cycles.zst >cut.zst
expect_exit 65 "cut.zst is truncated: it ends in recorded cycle" $renzan cluster replay cut.zst

# Recordings changed with the library that the program itself uses: other decisions, another version,
# other bytes.
python3 - <<'PY'
import ctypes
import json

zstd = ctypes.CDLL("libzstd.so.1")
for name in ("ZSTD_findFrameCompressedSize", "ZSTD_decompress", "ZSTD_compress", "ZSTD_compressBound"):
    getattr(zstd, name).restype = ctypes.c_size_t
zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong


def read(data):
    frames = []
    while data:
        size = zstd.ZSTD_findFrameCompressedSize(data, ctypes.c_size_t(len(data)))
        text = ctypes.create_string_buffer(
            zstd.ZSTD_getFrameContentSize(data, ctypes.c_size_t(size)))
        zstd.ZSTD_decompress(text, ctypes.c_size_t(len(text)), data, ctypes.c_size_t(size))
        frames.append(text.raw)
        data = data[size:]
    return frames


def frame(text):
    out = ctypes.create_string_buffer(zstd.ZSTD_compressBound(ctypes.c_size_t(len(text))))
    size = zstd.ZSTD_compress(out, ctypes.c_size_t(len(out)), text, ctypes.c_size_t(len(text)), 1)
    return out.raw[:size]


data = open("cycles.zst", "rb").read()
header, *cycles = read(data)
head, snapshot = cycles[0].split(b"\n", 1)
head = json.loads(head)
other = head | {"decisions": head["decisions"] | {"starts": []}}
open("other.zst", "wb").write(b"".join(map(frame, [
    header, json.dumps(other).encode() + b"\n" + snapshot, *cycles[1:]])))
wrong = head | {"decisions": head["decisions"] | {"checkpoints": [12345]}}
open("wrong.zst", "wb").write(b"".join(map(frame, [
    header, json.dumps(wrong).encode() + b"\n" + snapshot, *cycles[1:]])))
later = json.loads(header) | {"version": 2, "program": "renzan 9", "new": 1}
open("later.zst", "wb").write(frame(json.dumps(later).encode()))
middle = len(data) // 2
open("damaged.zst", "wb").write(data[:middle] + b"\0\0\0\0" + data[middle + 4:])
PY
expect_exit 1 "starts[0]: none was recorded, and now there is {\"job\":1" $renzan cluster replay other.zst
grep -q '^other decisions in 1 of [0-9]* cycles, which renzan .* recorded$' out.txt || fail "no summary"
expect_exit 1 '"same":false' $renzan cluster replay other.zst --json
expect_exit 65 "wrong.zst: recorded cycle 1 of" $renzan cluster replay wrong.zst
expect_exit 65 "has version 2 of the format, and this program reads version 1" $renzan cluster replay later.zst
expect_exit 65 "damaged.zst is damaged in recorded cycle" $renzan cluster replay damaged.zst

# The daemon of one machine records, too; jobs have names there.
$renzan cluster up --nodes 1 --record daemon.zst >/dev/null
expect_exit 0 "" $renzan submit --wait --name first -- true
# A job that is changed meanwhile: in later cycles it has another priority.
cpus=$(node_field local-0 capacity | python3 -c 'import json, sys; print(json.load(sys.stdin)["cpu"])')
busy=$($renzan submit --cpus "$cpus" -- sleep 1000)
wait_for is "$busy" state running
early=$($renzan submit --cpus "$cpus" -- true) late=$($renzan submit --cpus "$cpus" -- true)
expect_exit 0 "priority 0 -> -1" $renzan job update "$early" --priority -1
expect_exit 0 "timeout 0s -> 100ms" $renzan job update "$busy" --timeout 100ms
wait_for is "$early" state done
job_field "$early" started >early; job_field "$late" started >late
[ "$(cat late)" -lt "$(cat early)" ] || fail "the job of lower priority went first"
$renzan cluster down >/dev/null
expect_exit 0 "the same decisions" $renzan cluster replay daemon.zst --explain first
grep -q 'start *first (1) .*fits' out.txt || { cat out.txt >&2; fail "the start is not listed"; }
$renzan cluster up --nodes 1 --record daemon.zst >/dev/null
$renzan cluster down >/dev/null
expect_exit 0 "the same decisions" $renzan cluster replay daemon.zst.1 --explain first
expect_exit 73 "/no/such/directory" $renzan cluster up --nodes 1 --foreground --record /no/such/directory/x
