#include "renzan/cluster/record/cycle_json.h"

#include <vector>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/described_json.h"
#include "renzan/cluster/spec/snapshot_json.h"

// Structured bindings decompose every structure: with one more field it does not compile, so no
// field is forgotten here.

namespace renzan::cluster {
namespace {

using spec::AsWord;
using spec::NullAtMax;
using spec::Word;

constexpr Word<StopReason> kStopReasons[] = {{StopReason::kPreempted, "preempted"},
                                             {StopReason::kTimeShared, "time_shared"},
                                             {StopReason::kReclaimed, "reclaimed"},
                                             {StopReason::kReservation, "reservation"},
                                             {StopReason::kNodeLeaving, "node_leaving"},
                                             {StopReason::kOverCap, "over_cap"},
                                             {StopReason::kGrandChallenge, "grand_challenge"},
                                             {StopReason::kRequested, "requested"}};
constexpr Word<WaitReason> kWaitReasons[] = {{WaitReason::kInfeasible, "infeasible"},
                                             {WaitReason::kBackoff, "backoff"},
                                             {WaitReason::kQueueLimit, "queue_limit"},
                                             {WaitReason::kUserCap, "user_cap"},
                                             {WaitReason::kGuaranteedQuota, "guaranteed_quota"},
                                             {WaitReason::kResources, "resources"},
                                             {WaitReason::kFragmented, "fragmented"},
                                             {WaitReason::kReserved, "reserved"},
                                             {WaitReason::kPipelined, "pipelined"},
                                             {WaitReason::kNodesBooting, "nodes_booting"},
                                             {WaitReason::kWithheld, "withheld"}};

}  // namespace

template <typename Io>
void Describe(Io& io, ServiceLevelOptions& options) {
  auto& [thresholds_ms, gittins, min_run_per_cost, max_overhead_share] = options;
  io("thresholds_ms", thresholds_ms);
  io("gittins", gittins);
  io("min_run_per_cost", min_run_per_cost);
  io("max_overhead_share", max_overhead_share);
}

template <typename Io>
void Describe(Io& io, ScheduleOptions& options) {
  auto& [resizes, checkpoints, yields, overdue, levels, reserved] = options;
  io("min_between_resizes_ms", NullAtMax{resizes});
  io("max_checkpoint_interval_ms", NullAtMax{checkpoints});
  io("max_yields_to_backfill", yields);
  io("overdue_after_ms", NullAtMax{overdue});
  io("levels", levels);
  io("max_reserved_share", reserved);
}

template <typename Io>
void Describe(Io& io, Start& start) {
  auto& [job, placement, backfill] = start;
  io("job", job);
  io("placement", placement);
  io("backfill", backfill);
}

template <typename Io>
void Describe(Io& io, Stop& stop) {
  auto& [job, reason, on_behalf_of, requested_by] = stop;
  io("job", job);
  io("reason", AsWord<StopReason>{reason, kStopReasons});
  io("on_behalf_of", on_behalf_of);
  io("requested_by", requested_by);
}

template <typename Io>
void Describe(Io& io, Resize& resize) {
  auto& [job, target, on_behalf_of] = resize;
  io("job", job);
  io("target", target);
  io("on_behalf_of", on_behalf_of);
}

template <typename Io>
void Describe(Io& io, ScaleOut& scale) {
  auto& [pool, nodes] = scale;
  io("pool", pool);
  io("nodes", nodes);
}

template <typename Io>
void Describe(Io& io, ScaleIn& scale) {
  auto& [node] = scale;
  io("node", node);
}

template <typename Io>
void Describe(Io& io, Wait& wait) {
  auto& [job, reason, blocked_by] = wait;
  io("job", job);
  io("reason", AsWord<WaitReason>{reason, kWaitReasons});
  io("blocked_by", blocked_by);
}

template <typename Io>
void Describe(Io& io, Decisions& decisions) {
  auto& [starts, stops, resizes, checkpoints, scale_out, scale_in, reservations, waits,
         look_again] = decisions;
  io("starts", starts);
  io("stops", stops);
  io("resizes", resizes);
  io("checkpoints", checkpoints);
  io("scale_out", scale_out);
  io("scale_in", scale_in);
  io("reservations", reservations);
  io("waits", waits);
  io("look_again", NullAtMax{look_again});
}

namespace record {
namespace {

struct NamedJob {
  JobId id = 0;
  std::string ns, name;
};

// Everything but the snapshot.
struct Head {
  int64_t number = 0;
  ScheduleOptions options;
  Decisions decisions;
  std::vector<NamedJob> names;
};

template <typename Io>
void Describe(Io& io, NamedJob& job) {
  io("id", job.id);
  io("namespace", job.ns);
  io("name", job.name);
}

template <typename Io>
void Describe(Io& io, Head& head) {
  io("cycle", head.number);
  io("options", head.options);
  io("decisions", head.decisions);
  io("names", head.names);
}

// Checks what a replay uses as an index or looks up; the snapshot's own references were checked
// with it.
void CheckReferences(const Cycle& cycle) {
  const auto require = [](bool valid, const char* what, int64_t value) {
    if (!valid)
      Fail(ErrorCode::kData, "the cycle's decisions have a {} {}, which is not in its snapshot",
           what, value);
  };
  const auto check_job = [&](JobId id) { require(cycle.snapshot.Find(id) != nullptr, "job", id); };
  const auto check_placement = [&](const Placement& placement) {
    for (const Placed& placed : placement)
      require(placed.node >= 0 && placed.node < static_cast<int>(cycle.snapshot.nodes.size()),
              "node", placed.node);
  };
  const Decisions& decisions = cycle.decisions;
  for (const Start& start : decisions.starts) {
    check_job(start.job);
    check_placement(start.placement);
  }
  for (const Stop& stop : decisions.stops) check_job(stop.job);
  for (const Resize& resize : decisions.resizes) {
    check_job(resize.job);
    check_placement(resize.target);
  }
  for (const JobId job : decisions.checkpoints) check_job(job);
  for (const Reservation& reservation : decisions.reservations)
    check_placement(reservation.placement);
  for (const Wait& wait : decisions.waits) check_job(wait.job);
  for (const ScaleOut& scale : decisions.scale_out)
    require(scale.pool >= 0 && scale.pool < static_cast<int>(cycle.snapshot.pools.size()), "pool",
            scale.pool);
  for (const ScaleIn& scale : decisions.scale_in) check_placement({{scale.node, 1}});
}

}  // namespace

std::string CycleToJson(const Cycle& cycle) {
  Head head{cycle.number, cycle.options, cycle.decisions, {}};
  for (const auto& [id, name] : cycle.names) head.names.push_back({id, name.ns, name.name});
  return spec::JsonWriter::Text(head) + "\n" + spec::SnapshotToJson(cycle.snapshot) + "\n";
}

Cycle CycleFromJson(std::string_view text) {
  const size_t line = text.find('\n');
  if (line == text.npos) Fail(ErrorCode::kData, "the cycle lacks its snapshot");
  auto head = spec::JsonReader::Parse<Head>(text.substr(0, line), "cycle");
  Cycle cycle{.number = head.number,
              .options = std::move(head.options),
              .snapshot = spec::SnapshotFromJson(text.substr(line + 1)),
              .decisions = std::move(head.decisions),
              .names = {}};
  for (NamedJob& job : head.names) cycle.names[job.id] = {std::move(job.ns), std::move(job.name)};
  CheckReferences(cycle);
  return cycle;
}

std::string DecisionsToJson(const Decisions& decisions) {
  Decisions copy = decisions;
  return spec::JsonWriter::Text(copy);
}

const char* WordOf(StopReason reason) { return spec::WordOf(reason, kStopReasons); }
const char* WordOf(WaitReason reason) { return spec::WordOf(reason, kWaitReasons); }

}  // namespace record
}  // namespace renzan::cluster
