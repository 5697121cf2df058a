#include "renzan/cluster/spec/snapshot_json.h"

#include "renzan/cluster/spec/check_indices.h"
#include "renzan/cluster/spec/described_json.h"
#include "renzan/cluster/spec/node_state.h"
#include "renzan/cluster/spec/queue_rights.h"

namespace renzan::cluster::spec {
namespace {

constexpr Word<NodeState> WordOf(NodeState state) { return {state, NameOf(state)}; }
constexpr Word<NodeState> kNodeWords[] = {WordOf(NodeState::kReady), WordOf(NodeState::kBooting),
                                          WordOf(NodeState::kDraining), WordOf(NodeState::kGone),
                                          WordOf(NodeState::kCordoned)};
constexpr Word<JobState> kJobStates[] = {{JobState::kPending, "pending"},
                                         {JobState::kRunning, "running"},
                                         {JobState::kStopping, "stopping"},
                                         {JobState::kResizing, "resizing"}};

}  // namespace

template <typename Io>
void Describe(Io& io, Node& node) {
  io("name", node.name);
  io("pool", node.pool);
  io("capacity", node.capacity);
  io("labels", node.labels);
  io("state", AsWord<NodeState>{node.state, kNodeWords});
  io("until", NullAtMax{node.until});
  io("idle_since", node.idle_since);
  io("spot", node.spot);
  io("reason", AbsentIfEmpty{node.reason});
}

template <typename Io>
void Describe(Io& io, Pool& pool) {
  io("name", pool.name);
  io("capacity", pool.capacity);
  io("labels", pool.labels);
  io("domains", pool.domains);
  io("spot", pool.spot);
  io("min_nodes", pool.min_nodes);
  io("max_nodes", pool.max_nodes);
  io("price_per_hour", pool.price_per_hour);
  io("boot_ms", pool.boot_ms);
  io("idle_ms", pool.idle_ms);
  io("interruptions_per_hour", pool.interruptions_per_hour);
  io("boot_ahead", Dropped{});
  io("expected_nodes", Dropped{});
}

template <typename Io>
void Describe(Io& io, UsedLately& used) {
  io("user", used.user);
  io("seconds", used.seconds);
}

template <typename Io>
void Describe(Io& io, FairShare& fair_share) {
  io("half_life_ms", fair_share.half_life);
  io("used", fair_share.used);
}

template <typename Io>
void Describe(Io& io, Queue& queue) {
  io("name", queue.name);
  io("guaranteed", queue.guaranteed);
  io("limit", queue.limit);
  io("removed", queue.removed);
  DescribeRightsJson(io, queue.rights);
  io("parent", AbsentIfNone<int>{queue.parent});
  io("fair_share", AbsentIfNone<FairShare>{queue.fair_share});
}

template <typename Io>
void Describe(Io& io, QuotaOverride& quota_override) {
  io("max_gpus", NullAtMax{quota_override.max_gpus});
  io("until", NullAtMax{quota_override.until});
}

template <typename Io>
void Describe(Io& io, FailingNode& failing) {
  io("node", failing.node);
  io("jobs", failing.jobs);
  io("since", failing.since);
  io("latest", failing.latest);
}

template <typename Io>
void Describe(Io& io, User& user) {
  io("name", user.name);
  io("max_gpus", NullAtMax{user.max_gpus});
  io("quota_overrides", user.quota_overrides);
  io("failing_on", AbsentIfEmpty{user.failing_on});
}

template <typename Io>
void Describe(Io& io, WorkerRequest& request) {
  io("per_worker", request.per_worker);
  io("required", request.required);
  io("preferred", request.preferred);
  io("topology_level", request.topology_level);
  io("topology_required", request.topology_required);
  io("excluded_nodes", AbsentIfEmpty{request.excluded_nodes});
}

template <typename Io>
void Describe(Io& io, Job& job) {
  io("id", job.id);
  io("request", job.request);
  io("queue", job.queue);
  io("user", job.user);
  io("priority", job.priority);
  io("min_workers", job.min_workers);
  io("max_workers", job.max_workers);
  io("checkpoints", job.checkpoints);
  io("preemptible", job.preemptible);
  io("grand_challenge", job.quota_exempt);
  io("submitted", job.submitted);
  io("grace_ms", job.grace_ms);
  io("max_checkpoint_interval_ms", job.max_checkpoint_interval_ms);
  io("state", AsWord<JobState>{job.state, kJobStates});
  io("eligible_at", NullAtMax{job.eligible_at});
  io("held", job.held);
  io("placement", job.placement);
  io("target", job.target);
  io("started", job.started);
  io("last_resize", job.last_resize);
  io("last_checkpoint", job.last_checkpoint);
  io("stopping_for", job.stopping_for);
  io("backfilled", job.backfilled);
  io("waiting_since", job.waiting_since);
  io("attained_worker_ms", job.attained_worker_ms);
  io("restart_cost_ms", job.restart_cost_ms);
  io("checkpoint_cost_ms", job.checkpoint_cost_ms);
  io("state_bytes", job.state_bytes);
  io("run_time", job.run_time);
  io("run_time_now", AbsentIfNone{job.run_time_now});
  io("expected_end", job.expected_end);
  io("preemptions", job.preemptions);
  io("reservation_yields", job.reservation_yields);
  io("failed_on", AbsentIfEmpty{job.failed_on});
}

template <typename Io>
void Describe(Io& io, Snapshot& snapshot) {
  io("now", snapshot.now);
  io("resource_names", snapshot.resource_names);
  io("topology_levels", snapshot.topology_levels);
  io("nodes", snapshot.nodes);
  io("pools", snapshot.pools);
  io("queues", snapshot.queues);
  io("users", snapshot.users);
  io("worker_requests", snapshot.worker_requests);
  io("jobs", snapshot.jobs);
  io("reservations", snapshot.reservations);
  io("budget_per_hour", NullAtInfinity{snapshot.budget_per_hour});
}

std::string SnapshotToJson(const Snapshot& snapshot) {
  Snapshot copy = snapshot;  // Describe() serves both directions and takes mutable values
  return JsonWriter::Text(copy);
}

Snapshot SnapshotFromJson(std::string_view text) {
  auto snapshot = JsonReader::Parse<Snapshot>(text, "snapshot");
  for (Job& job : snapshot.jobs)
    if (job.quota_exempt)
      job.preemptible = false;  // earlier versions wrote what the user had asked
  CheckIndices(snapshot);
  return snapshot;
}

}  // namespace renzan::cluster::spec
