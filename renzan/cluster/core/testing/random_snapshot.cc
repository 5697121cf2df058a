#include "renzan/cluster/core/testing/random_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "renzan/base/philox.h"
#include "renzan/cluster/core/labels.h"
#include "renzan/cluster/core/place/sites.h"
#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster {
namespace {

constexpr uint64_t kFairShare = 1'000'000'000, kParents = 2'000'000'000;  // apart from other seeds

Resources NodeOf(int64_t gpus) {
  return {.amount = {16'000 + gpus * 6'000, 65'536 * (gpus + 1), gpus}};
}

void AddPool(Draws& draws, Snapshot& snapshot, const std::string& name, bool scaled) {
  Pool pool = {.name = name, .capacity = NodeOf(draws.OneOf<int64_t>({0, 2, 4, 8, 8, 8}))};
  pool.labels["gpu_model"] = draws.OneOf<std::string>({"a100", "a100", "v100"});
  if (scaled) {
    if (draws.Chance(0.7)) pool.labels["rack"] = fmt::format("{}", draws.Between(0, 2));
    pool.spot = draws.Chance(0.6);
    pool.price_per_hour = static_cast<double>(draws.Between(1, 10));
    pool.boot_ms = draws.Between(0, 5) * kMinute;
    pool.interruptions_per_hour = pool.spot ? 0.2 : 0;
  }
  const int nodes = static_cast<int>(draws.Between(1, 6));
  pool.max_nodes = nodes;
  pool.min_nodes = scaled ? static_cast<int>(draws.Between(0, nodes - 1)) : nodes;
  snapshot.pools.push_back(pool);
  const int index = static_cast<int>(snapshot.pools.size()) - 1;
  for (int node = 0; node < pool.min_nodes; ++node)
    snapshot.nodes.push_back(RandomNode(draws, snapshot, index, node));
}

void AddQueues(Draws& draws, Snapshot& snapshot) {
  int64_t gpus = 0;
  for (const Pool& pool : snapshot.pools) gpus += pool.capacity.gpu() * pool.max_nodes;
  const int queues = static_cast<int>(draws.Between(1, 4));
  const bool quotas = draws.Chance(0.8);
  for (int index = 0; index < queues; ++index) {
    Queue queue = {.name = fmt::format("queue-{}", index)};
    if (quotas && draws.Chance(0.8)) queue.guaranteed[kGpu] = draws.Between(0, gpus / queues);
    if (quotas && draws.Chance(0.3))
      queue.limit[kGpu] = queue.guaranteed[kGpu] + draws.Between(0, gpus);
    if (quotas && draws.Chance(0.2)) queue.limit[kCpu] = draws.Between(8, 80) * 1'000;
    snapshot.queues.push_back(queue);
  }
  for (int index = 0; index < 3; ++index) {
    User user = {.name = fmt::format("user-{}", index)};
    if (draws.Chance(0.4)) {
      user.max_gpus = draws.Between(1, 24);
      if (draws.Chance(0.5))
        user.quota_overrides.push_back({.max_gpus = user.max_gpus + draws.Between(1, 24),
                                        .until = snapshot.now + draws.Between(1, 180) * kMinute});
    }
    snapshot.users.push_back(user);
  }
}

// A random number of workers on random nodes; empty if they do not fit.
Placement RandomPlacement(Draws& draws, const Snapshot& snapshot, const Job& job) {
  const WorkerRequest& request = snapshot.worker_requests[job.request];
  const std::vector<int> domains = request.topology_required
                                       ? DomainsAt(snapshot, request.topology_level)
                                       : std::vector<int>(snapshot.nodes.size());
  const check::Held held = check::HeldNow(snapshot);
  const int first = static_cast<int>(draws.Between(0, static_cast<int64_t>(held.size()) - 1));
  int left = static_cast<int>(draws.Between(job.min_workers, job.max_workers));
  Placement placement;
  for (size_t i = 0; i < held.size(); ++i) {
    const int node = static_cast<int>((first + i) % held.size());
    const bool may = domains[node] >= 0 && domains[node] == domains[first] &&
                     Matches(snapshot.nodes[node], request) && IsThere(snapshot.nodes[node].state);
    const int workers =
        may ? WorkersThatFit(snapshot.nodes[node].capacity - held[node], request.per_worker, left)
            : 0;
    if (workers > 0) placement.push_back({node, workers});
    left -= workers;
  }
  if (left > 0) return {};
  std::sort(placement.begin(), placement.end(),
            [](const Placed& a, const Placed& b) { return a.node < b.node; });
  return placement;
}

void PutSomewhere(Draws& draws, Snapshot& snapshot, Job& job) {
  job.placement = RandomPlacement(draws, snapshot, job);
  if (job.placement.empty()) return;
  job.state = draws.Chance(0.15) ? JobState::kStopping : JobState::kRunning;
  job.started = std::max(job.submitted, snapshot.now - draws.Between(0, 120) * kMinute);
  job.last_resize = job.started;
  if (job.checkpoints && draws.Chance(0.7))
    job.last_checkpoint = snapshot.now - draws.Between(0, 20) * kMinute;
  if (draws.Chance(0.3)) job.expected_end = snapshot.now + draws.Between(1, 100) * kMinute;
  job.backfilled = job.checkpoints && job.preemptible && draws.Chance(0.1);
}

// Some jobs have failed on nodes, and some exclude nodes. Of its own draws: the rest of a snapshot
// does not depend on it.
void AddAvoidance(Draws draws, Snapshot& snapshot) {
  const auto some_nodes = [&] {
    std::set<std::string> names;
    for (int64_t left = draws.Between(1, 3); left > 0; --left)
      names.insert(
          snapshot.nodes[draws.Between(0, static_cast<int64_t>(snapshot.nodes.size()) - 1)].name);
    return std::vector<std::string>(names.begin(), names.end());
  };
  if (draws.Chance(0.5)) return;
  for (Job& job : snapshot.jobs) {
    if (draws.Chance(0.2)) job.failed_on = some_nodes();
    if (draws.Chance(0.9)) continue;
    WorkerRequest request = snapshot.worker_requests[job.request];
    request.excluded_nodes = some_nodes();
    job.request = snapshot.InternRequest(request);
  }
  for (User& user : snapshot.users) {
    if (draws.Chance(0.7)) continue;
    for (const std::string& node : some_nodes()) {
      const TimeMs latest = snapshot.now - draws.Between(0, 70) * kMinute;
      const TimeMs since = latest - draws.Between(0, 60) * kMinute;
      user.failing_on.push_back({.node = node, .jobs = 3, .since = since, .latest = latest});
    }
  }
}

// Moves the job to another random placement.
void Move(Draws& draws, Snapshot& snapshot, Job& job) {
  job.target = RandomPlacement(draws, snapshot, job);
  if (!job.target.empty()) job.state = JobState::kResizing;
}

}  // namespace

Draws::Draws(uint64_t seed) : key_(PhiloxKey(seed, "random snapshot")) {}

int64_t Draws::Between(int64_t low, int64_t high) {
  const Philox::Block block = Philox::Draw(key_, next_++);
  const uint64_t word = uint64_t{block[0]} << 32 | block[1];
  return low + static_cast<int64_t>(word % static_cast<uint64_t>(high - low + 1));
}

bool Draws::Chance(double probability) {
  return static_cast<double>(Between(0, 999'999)) < probability * 1e6;
}

Node RandomNode(Draws& draws, const Snapshot& snapshot, int pool, int number) {
  const Pool& of = snapshot.pools[pool];
  Node node = {.name = fmt::format("{}-{}", of.name, number),
               .pool = pool,
               .capacity = of.capacity,
               .labels = of.labels,
               .idle_since = snapshot.now,
               .spot = of.spot};
  if (of.min_nodes == of.max_nodes && draws.Chance(0.9))
    node.labels["rack"] = fmt::format("{}", number % 3);
  return node;
}

Snapshot RandomCluster(Draws& draws) {
  Snapshot snapshot;
  snapshot.now = 1'000 * kHour;
  snapshot.topology_levels = {"rack"};
  const int own = static_cast<int>(draws.Between(1, 3));
  for (int pool = 0; pool < own; ++pool)
    AddPool(draws, snapshot, fmt::format("own-{}", pool), false);
  const int scaled = static_cast<int>(draws.Between(0, 2));
  for (int pool = 0; pool < scaled; ++pool)
    AddPool(draws, snapshot, fmt::format("cloud-{}", pool), true);
  AddQueues(draws, snapshot);
  return snapshot;
}

Job RandomJob(Draws& draws, Snapshot& snapshot, JobId id) {
  WorkerRequest request;
  const int64_t gpus = draws.OneOf<int64_t>({0, 1, 1, 2, 4, 8});
  request.per_worker = {.amount = {draws.Between(1, 4 + 4 * gpus) * 1'000,
                                   draws.Between(1, 16 + 32 * gpus) * 1'024, gpus}};
  if (draws.Chance(0.15))
    request.required["gpu_model"] = draws.OneOf<std::string>({"a100", "v100"});
  if (draws.Chance(0.15)) request.preferred["gpu_model"] = "a100";
  if (draws.Chance(0.2)) {
    request.topology_level = draws.OneOf<std::string>({"rack", "host"});
    request.topology_required = draws.Chance(0.7);
  }
  Job job = {.id = id, .request = snapshot.InternRequest(request)};
  const auto is_parent = [](const Queue& queue) { return queue.name.starts_with("parent"); };
  const int64_t queues = std::ranges::count_if(snapshot.queues, std::not_fn(is_parent));
  job.queue = static_cast<int>(draws.Between(0, queues - 1));
  job.user = static_cast<int>(draws.Between(0, static_cast<int64_t>(snapshot.users.size()) - 1));
  job.priority = static_cast<int>(draws.OneOf<int64_t>({0, 0, 0, 1, 2, 5}));
  job.min_workers = static_cast<int>(draws.OneOf<int64_t>({1, 1, 1, 2, 3, 4, 6}));
  job.max_workers = job.min_workers;
  if (draws.Chance(0.3)) job.max_workers += static_cast<int>(draws.Between(1, 4));
  job.checkpoints = draws.Chance(0.7);
  job.preemptible = draws.Chance(0.85);
  job.quota_exempt = draws.Chance(0.01);
  if (job.quota_exempt) job.preemptible = false;
  job.submitted = job.waiting_since = snapshot.now;
  job.grace_ms = draws.Between(1, 60) * kSecond;
  job.restart_cost_ms = draws.Between(0, 60) * kSecond;
  job.checkpoint_cost_ms = draws.Between(1, 40) * kSecond;  // some longer than the grace
  job.state_bytes = draws.Between(0, 1 << 30);
  if (draws.Chance(0.4))
    for (size_t i = 0; i < job.run_time.size(); ++i)
      job.run_time[i] = draws.Between(0, draws.OneOf<int64_t>({1, 30, 600})) * kMinute +
                        (i == 0 ? kSecond : job.run_time[i - 1]);
  return job;
}

void AddFairShare(Draws draws, Snapshot& snapshot) {
  for (Queue& queue : snapshot.queues) {
    if (draws.Chance(0.6) || queue.name.starts_with("parent")) continue;
    queue.fair_share = {.half_life = draws.OneOf({kHour, 24 * kHour, 7 * 24 * kHour})};
    for (int user = 0; user < static_cast<int>(snapshot.users.size()); ++user)
      if (draws.Chance(0.7))
        queue.fair_share->used.push_back(
            {user, static_cast<double>(draws.Between(0, 1000)) * draws.OneOf({0.001, 1.0, 100.0})});
  }
}

// A parent of some that have none.
void AddParent(Draws& draws, Snapshot& snapshot, double of_each) {
  const int index = static_cast<int>(snapshot.queues.size());
  Queue parent = {.name = fmt::format("parent-{}", index)};
  for (int queue = 0; queue < index; ++queue) {
    if (snapshot.queues[queue].parent || !draws.Chance(of_each)) continue;
    snapshot.queues[queue].parent = index;
    parent.guaranteed += snapshot.queues[queue].guaranteed;
  }
  if (draws.Chance(0.3)) parent.guaranteed[kGpu] += draws.Between(0, 8);
  snapshot.queues.push_back(parent);
}

// Trees of two levels, half of them of three or four. Their branches are not equally long: queues
// that have no parent yet may get one of the upper ones.
void AddParents(Draws draws, Snapshot& snapshot) {
  if (draws.Chance(0.5)) {
    const int index = static_cast<int>(snapshot.queues.size());
    snapshot.queues.push_back(snapshot.queues[draws.Between(0, index - 1)]);
    snapshot.queues.back().name = fmt::format("queue-{}", index);
    for (Job& job : snapshot.jobs)
      if (draws.Chance(0.2)) job.queue = index;
  }
  for (int64_t parents = draws.Between(1, 2); parents > 0; --parents)
    AddParent(draws, snapshot, 0.5);
  if (draws.Chance(0.5)) return;
  for (int64_t upper = draws.Between(1, 2); upper > 0; --upper) AddParent(draws, snapshot, 0.8);
}

Snapshot RandomSnapshot(uint64_t seed) {
  Draws draws(seed);
  Snapshot snapshot = RandomCluster(draws);
  for (size_t pool = 0; pool < snapshot.pools.size(); ++pool)
    if (snapshot.pools[pool].min_nodes < snapshot.pools[pool].max_nodes && draws.Chance(0.7))
      snapshot.nodes.push_back(RandomNode(draws, snapshot, static_cast<int>(pool), 99));
  for (Node& node : snapshot.nodes) {
    if (draws.Chance(0.85)) continue;
    node.state = draws.OneOf({NodeState::kBooting, NodeState::kDraining, NodeState::kDraining,
                              NodeState::kGone, NodeState::kCordoned});
    if (node.state != NodeState::kCordoned && draws.Chance(0.8))
      node.until = snapshot.now + draws.Between(1, 120) * kSecond;
  }
  const int jobs = static_cast<int>(draws.Between(1, 40));
  const TimeMs apart = draws.OneOf<TimeMs>({kMinute, kMinute, kHour});
  for (JobId id = 1; id <= jobs; ++id) {
    Job job = RandomJob(draws, snapshot, id);
    job.submitted = job.waiting_since = snapshot.now - (jobs - id + 1) * apart;
    if (draws.Chance(0.5))
      job.attained_worker_ms = draws.Between(0, 300) * draws.OneOf<TimeMs>({kMinute, kHour});
    job.preemptions = static_cast<int>(draws.OneOf<int64_t>({0, 0, 0, 1, 10}));
    if (draws.Chance(0.6)) PutSomewhere(draws, snapshot, job);
    if (job.state == JobState::kPending && draws.Chance(0.05))
      job.eligible_at = snapshot.now + kMinute;
    snapshot.jobs.push_back(job);
    if (job.state == JobState::kRunning && job.checkpoints && draws.Chance(0.1))
      Move(draws, snapshot, snapshot.jobs.back());
  }
  AddAvoidance(Draws(~seed), snapshot);
  if (Draws tree(seed + kParents); tree.Chance(0.4)) AddParents(tree, snapshot);
  Draws fair(seed + kFairShare);
  if (fair.Chance(0.5)) return snapshot;
  AddFairShare(fair, snapshot);
  // So that there are some that only their users tell apart.
  for (int twins = 0; twins < 20; ++twins) {
    Job twin = snapshot.jobs[fair.Between(0, static_cast<int64_t>(snapshot.jobs.size()) - 1)];
    if (twin.state != JobState::kPending) continue;
    twin.id = snapshot.jobs.back().id + 1;
    twin.user = static_cast<int>(fair.Between(0, static_cast<int64_t>(snapshot.users.size()) - 1));
    snapshot.jobs.push_back(twin);
  }
  return snapshot;
}

bool InjectFault(Draws& draws, Snapshot& snapshot) {
  Job& job = snapshot.jobs[draws.Between(0, static_cast<int64_t>(snapshot.jobs.size()) - 1)];
  const int any =
      static_cast<int>(draws.Between(0, static_cast<int64_t>(snapshot.nodes.size()) - 1));
  if (job.state == JobState::kPending) {
    job.placement = {{any, 1}};
    return true;
  }
  if (job.state != JobState::kRunning) return false;
  Node& node = snapshot.nodes[job.placement[0].node];
  switch (draws.Between(0, 3)) {
    case 0:
      node.state = NodeState::kGone;
      break;
    case 1:
      node.capacity = {};
      break;
    case 2:
      job.max_workers = job.min_workers = NumWorkers(job.placement) + 1;
      break;
    default:
      job.target = {{any, 1}};
  }
  return true;
}

}  // namespace renzan::cluster
