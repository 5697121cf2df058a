#include "renzan/cluster/record/causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "renzan/base/clock.h"
#include "renzan/cluster/core/order/rank.h"
#include "renzan/cluster/record/cycle_json.h"

namespace renzan::cluster::record {
namespace {

using Json = nlohmann::ordered_json;

// "2026-01-31T12:34:56.789Z"
std::string TimeText(TimeMs time) {
  const TimeMs seconds = time / kSecond;
  std::string text = FormatUtc(static_cast<double>(seconds));
  text.pop_back();
  return fmt::format("{}.{:03}Z", text, time - seconds * kSecond);
}

class Causes {
 public:
  explicit Causes(const CycleView& cycle)
      : cycle_(cycle),
        snapshot_(cycle.snapshot),
        ranks_(cycle.snapshot, cycle.options.levels),
        queue_gpus_(cycle.snapshot.queues.size()),
        user_gpus_(cycle.snapshot.users.size()) {
    for (const Job& job : snapshot_.jobs) {
      if (job.placement.empty()) continue;
      const int64_t gpus = snapshot_.worker_requests[job.request].per_worker.gpu() *
                           std::max(NumWorkers(job.placement), NumWorkers(job.target));
      queue_gpus_[job.queue] += gpus;
      user_gpus_[job.user] += gpus;
    }
  }

  std::vector<Json> All(const std::function<bool(const Wait&)>& wants_wait) {
    const Decisions& decisions = cycle_.decisions;
    for (const Stop& stop : decisions.stops) Add(stop);
    for (const Resize& resize : decisions.resizes) Add(resize);
    for (const Start& start : decisions.starts) Add(start);
    AddReservations();
    for (const ScaleOut& scale : decisions.scale_out) Add(scale);
    for (const ScaleIn& scale : decisions.scale_in) Add(scale);
    for (const JobId job : decisions.checkpoints) AddCheckpoint(job);
    for (const Wait& wait : decisions.waits)
      if (wants_wait(wait)) Add(wait);
    return std::move(all_);
  }

 private:
  Json Named(JobId id) const {
    Json job = Json::object();
    if (JobName name = cycle_.name_of(id); !name.name.empty()) {
      if (!name.ns.empty()) job["namespace"] = std::move(name.ns);
      job["name"] = std::move(name.name);
    }
    job["id"] = id;
    return job;
  }

  Json Amount(int64_t amount) const { return amount == kUnlimited ? Json() : Json(amount); }

  Json QueueOf(const Job& job) const {
    const Queue& queue = snapshot_.queues[job.queue];
    return {{"name", queue.name},
            {"guaranteed_gpus", queue.guaranteed.gpu()},
            {"limit_gpus", Amount(queue.limit.gpu())},
            {"used_gpus", queue_gpus_[job.queue]}};
  }

  // By what it goes before others.
  void PutPlace(const Job& job, Json& to) const {
    for (const auto& [term, value] : ranks_.Of(job).Terms()) to[term] = value;
    to["queue"] = QueueOf(job);
  }

  // The common part: what every decision about a job is based on.
  Json Cause(std::string reason, const Job& job) const {
    const User& user = snapshot_.users[job.user];
    Json cause = {{"reason", std::move(reason)}};
    PutPlace(job, cause);
    cause["user"] = {{"name", user.name},
                     {"max_gpus", Amount(user.CapAt(snapshot_.now))},
                     {"used_gpus", user_gpus_[job.user]}};
    return cause;
  }

  // Another job, for which something is done.
  Json Beneficiary(JobId id) const {
    if (id == 0) return {};
    Json job = Named(id);
    if (const Job* facts = snapshot_.Find(id); facts != nullptr) PutPlace(*facts, job);
    return job;
  }

  Json NodesOf(const Placement& placement) const {
    Json nodes = Json::array();
    for (const Placed& placed : placement)
      nodes.push_back({{"node", snapshot_.nodes[placed.node].name}, {"workers", placed.workers}});
    return nodes;
  }

  Json Base(const char* decision) const {
    return {{"time", TimeText(snapshot_.now)}, {"cycle", cycle_.number}, {"decision", decision}};
  }

  void Add(const char* decision, JobId job, const Placement& placement, Json cause) {
    Json object = Base(decision);
    object["job"] = Named(job);
    object["nodes"] = NodesOf(placement);
    object["cause"] = std::move(cause);
    all_.push_back(std::move(object));
  }

  void Add(const Stop& stop) {
    const Job& job = *snapshot_.Find(stop.job);
    Json cause = Cause(WordOf(stop.reason), job);
    cause["on_behalf_of"] = Beneficiary(stop.on_behalf_of);
    PutLeaving(job, cause);
    Add("stop", stop.job, job.placement, std::move(cause));
  }

  void PutLeaving(const Job& job, Json& cause) const {
    Json leaving = Json::array();
    for (const Placed& placed : job.placement) {
      const Node& node = snapshot_.nodes[placed.node];
      if (node.state != NodeState::kDraining) continue;
      leaving.push_back({{"node", node.name},
                         {"until", node.until == kNever ? Json() : Json(TimeText(node.until))}});
    }
    if (!leaving.empty()) cause["leaving"] = std::move(leaving);
  }

  void Add(const Resize& resize) {
    const Job& job = *snapshot_.Find(resize.job);
    const int from = NumWorkers(job.placement), to = NumWorkers(resize.target);
    Json cause = Cause(to > from ? "grow" : to < from ? "shrink" : "move", job);
    cause["from_workers"] = from;
    cause["to_workers"] = to;
    cause["on_behalf_of"] = Beneficiary(resize.on_behalf_of);
    PutLeaving(job, cause);
    Add("resize", resize.job, resize.target, std::move(cause));
  }

  void Add(const Start& start) {
    const Job& job = *snapshot_.Find(start.job);
    const bool reserved = Has(snapshot_.reservations, start.job);
    Json cause = Cause(start.backfill ? "backfilled" : reserved ? "reservation" : "fits", job);
    // Times in a status may be whole seconds, or another replica's.
    cause["waited_ms"] = std::max<TimeMs>(0, snapshot_.now - job.waiting_since);
    if (start.backfill) cause["reserved_for"] = HoldersOf(start.placement);
    Add("start", start.job, start.placement, std::move(cause));
  }

  // The jobs for which any of these nodes are reserved.
  Json HoldersOf(const Placement& placement) const {
    Json holders = Json::array();
    for (const Reservation& reservation : snapshot_.reservations) {
      const auto shares = [&](const Placed& mine) {
        return IsOn(reservation.placement, mine.node);
      };
      if (std::any_of(placement.begin(), placement.end(), shares))
        holders.push_back(Named(reservation.job));
    }
    return holders;
  }

  static bool Has(const std::vector<Reservation>& reservations, JobId job) {
    return std::any_of(reservations.begin(), reservations.end(),
                       [=](const Reservation& each) { return each.job == job; });
  }

  void AddReservations() {
    const std::vector<Reservation>& before = snapshot_.reservations;
    const std::vector<Reservation>& after = cycle_.decisions.reservations;
    for (const Reservation& reservation : after) {
      const Job* job = snapshot_.Find(reservation.job);
      if (job == nullptr || std::find(before.begin(), before.end(), reservation) != before.end())
        continue;
      Json cause = Cause("overdue", *job);
      cause["waited_ms"] = snapshot_.now - job->waiting_since;
      Add("reserve", reservation.job, reservation.placement, std::move(cause));
    }
    for (const Reservation& reservation : before) {
      if (Has(after, reservation.job)) continue;
      const Job* job = snapshot_.Find(reservation.job);
      const bool started =
          (job != nullptr && job->state != JobState::kPending) ||
          std::any_of(cycle_.decisions.starts.begin(), cycle_.decisions.starts.end(),
                      [&](const Start& start) { return start.job == reservation.job; });
      const char* reason = job == nullptr ? "ended" : started ? "started" : "not_needed";
      Add("release", reservation.job, reservation.placement,
          job == nullptr ? Json{{"reason", reason}} : Cause(reason, *job));
    }
  }

  void AddCheckpoint(JobId id) {
    const Job& job = *snapshot_.Find(id);
    Json cause = Cause("interruptible", job);
    cause["last_checkpoint"] = job.last_checkpoint ? Json(TimeText(*job.last_checkpoint)) : Json();
    Add("checkpoint", id, job.placement, std::move(cause));
  }

  void Add(const ScaleOut& scale) {
    const Pool& pool = snapshot_.pools[scale.pool];
    const std::vector<Wait>& waits = cycle_.decisions.waits;
    Json object = Base("scale_out");
    object["pool"] = pool.name;
    object["count"] = scale.nodes;
    object["cause"] = {
        {"reason", "demand"},
        {"price_per_hour", pool.price_per_hour},
        {"waiting_jobs", std::count_if(waits.begin(), waits.end(), [](const Wait& wait) {
           return wait.reason == WaitReason::kNodesBooting;
         })}};
    all_.push_back(std::move(object));
  }

  void Add(const ScaleIn& scale) {
    const Node& node = snapshot_.nodes[scale.node];
    Json object = Base("scale_in");
    Json cause = {{"reason", "idle"}, {"idle_ms", snapshot_.now - node.idle_since}};
    if (node.pool >= 0) {
      object["pool"] = snapshot_.pools[node.pool].name;
      cause["price_per_hour"] = snapshot_.pools[node.pool].price_per_hour;
    }
    object["nodes"] = Json::array({{{"node", node.name}}});
    object["cause"] = std::move(cause);
    all_.push_back(std::move(object));
  }

  void Add(const Wait& wait) {
    const Job& job = *snapshot_.Find(wait.job);
    Json object = Base("wait");
    object["job"] = Named(wait.job);
    Json cause = Cause(WordOf(wait.reason), job);
    cause["waited_ms"] = snapshot_.now - job.waiting_since;
    if (wait.blocked_by != 0) cause["blocked_by"] = Named(wait.blocked_by);
    object["cause"] = std::move(cause);
    all_.push_back(std::move(object));
  }

  const CycleView& cycle_;
  const Snapshot& snapshot_;
  const Ranks ranks_;
  std::vector<int64_t> queue_gpus_, user_gpus_;
  std::vector<Json> all_;
};

}  // namespace

std::vector<Json> DecisionsWithCauses(const CycleView& cycle,
                                      const std::function<bool(const Wait&)>& wants_wait) {
  return Causes(cycle).All(wants_wait);
}

std::string LineOf(const Json& decision) {
  return decision.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace renzan::cluster::record
