#include "renzan/cluster/simulate/simulation.h"

#include <algorithm>
#include <map>

#include "renzan/base/error.h"
#include "renzan/cluster/core/engine/nodes.h"
#include "renzan/cluster/core/explain/explain.h"

namespace renzan::cluster::simulate {
namespace {

// A simulation stops after this multiple of the time that all jobs would take one after the other.
constexpr int kMaxDurationFactor = 20;

// Caches why jobs are rejected; equal requests give equal answers.
class Rejections {
 public:
  explicit Rejections(const Snapshot& cluster) : cluster_(cluster) {}

  // Why the job can never run, or "".
  const std::string& Why(const WorkloadJob& job, int queue) {
    const WorkerRequest request{.per_worker = job.per_worker, .required = job.required};
    Job asked{.request = cluster_.InternRequest(request),
              .queue = queue,
              .user = cluster_.InternUser(job.user),
              .priority = job.priority,
              .min_workers = job.min_workers,
              .max_workers = job.max_workers,
              .checkpoints = job.checkpoints};
    const auto [known, added] =
        why_.try_emplace({asked.request, asked.queue, asked.user, asked.min_workers});
    if (added) known->second = WhyInfeasible(cluster_, asked);
    return known->second;
  }

 private:
  Snapshot cluster_;
  std::map<std::tuple<int, int, int, int>, std::string> why_;
};

int QueueOf(const Snapshot& cluster, const std::string& name) {
  for (size_t queue = 0; queue < cluster.queues.size(); ++queue)
    if (cluster.queues[queue].name == name) {
      for (const Queue& other : cluster.queues)
        if (other.parent == static_cast<int>(queue))
          Fail(ErrorCode::kConfig,
               "the workload has jobs of queue {}, which is the parent of others and takes no jobs "
               "itself: give them another queue, or replace the cluster's queues by the workload's "
               "with --quotas",
               name);
      return static_cast<int>(queue);
    }
  Fail(ErrorCode::kNoInput,
       "the workload has jobs of queue {}, which the cluster does not have: add the queue to the "
       "cluster, or replace its queues by the workload's with --quotas",
       name);
}

// The cluster with the minimum number of nodes of each pool.
Snapshot WithNodes(Snapshot cluster, const SimulatedPolicy& policy) {
  for (size_t index = 0; index < cluster.pools.size(); ++index) {
    Pool& pool = cluster.pools[index];
    // Only policies that scale pools would ever buy their nodes.
    if (!policy.ScalesPools()) pool.min_nodes = pool.max_nodes;
    auto there = std::count_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const Node& node) {
      return node.pool == static_cast<int>(index);
    });
    for (; there < pool.min_nodes; ++there)
      cluster.nodes.push_back(MakeNode(cluster, static_cast<int>(index), static_cast<int>(there)));
  }
  return cluster;
}

}  // namespace

SimulationResult Simulate(Snapshot cluster, const Workload& workload, SimulatedPolicy& policy,
                          const SimulatorOptions& options) {
  Simulation simulation(WithNodes(std::move(cluster), policy), policy, options);
  simulation.Plan(workload);
  return simulation.Run();
}

SimulationResult SimulateFrom(Snapshot cluster, const std::vector<int64_t>& work_left,
                              SimulatedPolicy& policy, const SimulatorOptions& options) {
  Simulation simulation(std::move(cluster), policy, options);
  simulation.Adopt(work_left);
  return simulation.Run();
}

Simulation::Simulation(Snapshot cluster, SimulatedPolicy& policy, const SimulatorOptions& options)
    : cluster_(std::move(cluster)),
      policy_(policy),
      options_(options),
      run_time_([this](JobId job, int workers) { return cluster_.RunTime(job, workers); }),
      end_time_([this](JobId job) { return cluster_.EndTime(job); }),
      for_estimates_([this] { return cluster_.SnapshotForEstimates(); }) {
  for (const Queue& queue : cluster_.snapshot().queues) result_.queue_names.push_back(queue.name);
  result_.totals.begin = result_.totals.last_submission = cluster_.now();
  BeginNodes();
}

void Simulation::Plan(const Workload& workload) {
  Rejections rejections(cluster_.snapshot());
  JobId id = 0;
  for (const WorkloadJob& job : workload) {
    ++id;
    ++jobs_;
    const std::string& why = rejections.Why(job, QueueOf(cluster_.snapshot(), job.queue));
    if (!why.empty()) {
      result_.rejected[id] = why;
      continue;
    }
    cluster_.Plan(id, job);
    submissions_.emplace_back(id, cluster_.now() + job.submitted);
  }
  if (submissions_.empty()) return;
  result_.totals.begin = submissions_.front().second;
  result_.totals.last_submission = submissions_.back().second;
}

void Simulation::Adopt(const std::vector<int64_t>& work_left) {
  const std::vector<Job> jobs = cluster_.snapshot().jobs;
  CHECK(jobs.size() == work_left.size());
  for (size_t place = 0; place < jobs.size(); ++place) {
    const Job& job = jobs[place];
    ++jobs_;
    const TimeMs next = cluster_.Adopt(job, work_left[place]);
    if (job.state != JobState::kPending) ExpectOfJob(next, What::kAttemptEnds, job.id);
  }
  wake_ = cluster_.now();
}

void Simulation::Expect(TimeMs time, What what, int64_t subject, int64_t version) {
  events_.push({time, what, subject, version});
}

void Simulation::ExpectOfJob(TimeMs time, What what, JobId job) {
  Expect(time, what, job, cluster_.version(job));
}

TimeMs Simulation::NextTime() const {
  TimeMs next = wake_;
  if (!events_.empty()) next = std::min(next, events_.top().time);
  if (next_submission_ < submissions_.size())
    next = std::min(next, submissions_[next_submission_].second);
  return next;
}

void Simulation::AdvanceTo(TimeMs time) {
  SimulationTotals& totals = result_.totals;
  const double passed = static_cast<double>(time - cluster_.now());
  const auto sum = [&](int64_t gpus) { return passed * static_cast<double>(gpus); };
  const bool counts = time > totals.begin;
  if (counts) {
    totals.present += sum(cluster_.present_gpus());
    totals.busy += sum(cluster_.busy_gpus());
    totals.cost += passed / 3.6e6 * cluster_.price_per_hour();
    if (time <= totals.last_submission) {
      totals.present_until_last_submission = totals.present;
      totals.busy_until_last_submission = totals.busy;
    }
    if (!cluster_.pending().empty()) {
      const PendingJob& head = cluster_.pending().front();
      const int64_t needs =
          head.min_workers * cluster_.snapshot().worker_requests[head.request].per_worker.gpu();
      totals.idle_while_waiting += sum(cluster_.idle_gpus());
      if (needs <= cluster_.idle_gpus()) totals.fragmented += sum(cluster_.idle_gpus());
    }
  }
  cluster_.SetTime(time);
}

void Simulation::SubmitNext() { cluster_.Submit(submissions_[next_submission_++].first); }

// Returns whether anything happened that the policy should see.
bool Simulation::HandleDue() {
  const TimeMs now = cluster_.now();
  bool happened = false;
  // First: that others end at this moment is not known yet (SimulatedCluster::run_times_).
  for (; next_submission_ < submissions_.size() && submissions_[next_submission_].second <= now;
       happened = true)
    SubmitNext();
  while (!events_.empty() && events_.top().time <= now) {
    const Event event = events_.top();
    events_.pop();
    happened |= Handle(event);
  }
  return happened;
}

bool Simulation::Handle(const Event& event) {
  const int node = static_cast<int>(event.subject);
  switch (event.what) {
    case What::kAttemptEnds:
    case What::kMayStartAgain:
      if (event.version != cluster_.version(event.subject)) return false;
      break;
    case What::kNodeReady:
    case What::kNodeGone:
    case What::kNodeNotice:
      if (event.version != node_version_[node]) return false;
      break;
    case What::kDeadlockTimeout:
      if (event.time != deadlock_deadline_) return false;
      break;
  }
  switch (event.what) {
    case What::kAttemptEnds:
      EndAttempt(event.subject, /*node_failed=*/false);
      break;
    case What::kMayStartAgain:
      cluster_.Enqueue(event.subject);
      break;
    case What::kNodeReady:
      NodeIsReady(node);
      break;
    case What::kNodeGone:
      FailNode(node);
      break;
    case What::kNodeNotice:
      NodeIsTaken(node);
      break;
    case What::kDeadlockTimeout:
      ResolveDeadlock();
      break;
  }
  return true;
}

void Simulation::Cycle() {
  const PolicyInput input{cluster_.snapshot(), cluster_.pending(), cluster_.free(), cluster_.held(),
                          run_time_,           end_time_,          for_estimates_};
  if (options_.check) CheckCluster();
  PolicyOutput output = policy_.Decide(input);
  ++result_.totals.cycles;
  if (options_.check && policy_.IsScheduler()) CheckCycle(output.decisions);
  last_cycle_ = cluster_.now();
  changed_ = false;
  const TimeMs look_again = output.decisions.look_again;
  last_cycle_idle_ = !Apply(std::move(output));
  // At most one cycle at any moment.
  wake_ = look_again == kNever ? kNever : std::max(look_again, cluster_.now() + 1);
  WatchDeadlocks();
}

// Whether no job can make progress any more, even if nodes still come and go.
bool Simulation::NothingCanChange() const {
  const Snapshot& snapshot = cluster_.snapshot();
  if (!last_cycle_idle_ || wake_ != kNever || deadlock_deadline_ != kNever || changed_)
    return false;
  if (next_submission_ < submissions_.size()) return false;
  for (const Node& node : snapshot.nodes)
    if (node.state == NodeState::kBooting || node.state == NodeState::kDraining) return false;
  return std::all_of(snapshot.jobs.begin(), snapshot.jobs.end(), [&](const Job& job) {
    return job.state == JobState::kPending && job.eligible_at <= snapshot.now;
  });
}

SimulationResult Simulation::Run() {
  const TimeMs max_duration = [&] {
    TimeMs all = 86'400'000;
    for (const auto& [id, submitted] : submissions_) all += cluster_.LongestTime(id);
    for (const PendingJob& job : cluster_.pending()) all += cluster_.LongestTime(job.job);
    return all * kMaxDurationFactor;
  }();
  while (!AllEnded() && !NothingCanChange()) {
    const TimeMs next = NextTime();
    if (next == kNever || next - result_.totals.last_submission > max_duration) break;
    AdvanceTo(next);
    changed_ |= HandleDue();
    changed_ |= wake_ <= next;
    const bool allowed = last_cycle_ < 0 || next - last_cycle_ >= options_.min_between_cycles_ms;
    if (changed_ && allowed) Cycle();
    if (changed_) wake_ = last_cycle_ + options_.min_between_cycles_ms;
  }
  result_.totals.end = cluster_.now();
  result_.jobs = cluster_.records();
  result_.runs = cluster_.runs();
  result_.waits = cluster_.waits();
  for (const JobRecord& job : result_.jobs)
    if (!job.end) result_.never_ended.push_back(job.id);
  if (options_.check)
    for (const JobId job : result_.never_ended)
      Violation(fmt::format("job {} never ended, though the cluster could hold it", job));
  return std::move(result_);
}

}  // namespace renzan::cluster::simulate
