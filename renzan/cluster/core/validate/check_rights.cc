// Who may stop whom. A cycle may decide in any order, and decisions do not tell which: where the
// rule depends on who went first, a stop is taken for right if some order makes it right.
//
// What counts as in use by a queue: its running jobs and resizing ones (with their target); those
// that are stopping are on their way out. Jobs that start or whose place is being vacated count too
// where it is asked what the queue borrows.

#include <algorithm>
#include <array>
#include <set>

#include "renzan/cluster/core/validate/check.h"

namespace renzan::cluster::check {
namespace {

// What a stop or a shrink sets free; nothing for growth.
struct Victim {
  const Job* job;
  Resources amount;
  JobId on_behalf_of;
  const Stop* stop;  // null: a shrink
};

class Rights {
 public:
  explicit Rights(Cycle& cycle) : cycle_(cycle), snapshot_(cycle.snapshot) {
    for (int kind = 0; kind < kMaxResources; ++kind)
      governed_[kind] =
          std::any_of(snapshot_.queues.begin(), snapshot_.queues.end(), [&](const Queue& queue) {
            return queue.guaranteed[kind] > 0 || queue.limit[kind] != kUnlimited;
          });
    for (const Stop& stop : cycle.decisions.stops) {
      const Job& job = *snapshot_.Find(stop.job);
      victims_.push_back({&job, Of(snapshot_, job, CountedWorkers(job)), stop.on_behalf_of, &stop});
      preemptors_.insert(stop.on_behalf_of);
    }
    for (const Resize& resize : cycle.decisions.resizes) {
      const Job& job = *snapshot_.Find(resize.job);
      const int fewer = NumWorkers(job.placement) - NumWorkers(resize.target);
      if (fewer > 0) {
        victims_.push_back({&job, Of(snapshot_, job, fewer), resize.on_behalf_of, nullptr});
        preemptors_.insert(resize.on_behalf_of);
      }
      if (fewer <= 0 && resize.on_behalf_of != 0)
        cycle.Report("job {} grows or moves on behalf of job {}", job.id, resize.on_behalf_of);
      if (fewer == 0 && !OnLeavingNode(job))
        cycle.Report("job {} is moved, although none of its nodes leaves", job.id);
    }
  }

  void Check() {
    std::map<int, std::vector<const Victim*>> lent;  // by the queue that had borrowed
    for (const Victim& victim : victims_) {
      if (victim.on_behalf_of == 0) {
        CheckWithoutPreemptor(victim);
        continue;
      }
      const Job* preemptor = snapshot_.Find(victim.on_behalf_of);
      if (preemptor == nullptr || !IsPipelined(preemptor->id)) {
        cycle_.Report("job {} gives way to job {}, which does not wait for it", victim.job->id,
                      victim.on_behalf_of);
      } else if (!victim.job->preemptible) {
        cycle_.Report("job {} gives way to job {} and is not preemptible", victim.job->id,
                      preemptor->id);
      } else if (!MayBeFrom(victim, *preemptor) && !IsOwed(victim, *preemptor)) {
        cycle_.Report("job {} ({}) has no right to stop or shrink job {} ({})", preemptor->id,
                      Describe(*preemptor), victim.job->id,
                      victim.stop == nullptr ? "shrink" : NameOf(victim.stop->reason));
      } else if (!MayBeFrom(victim, *preemptor)) {
        lent[victim.job->queue].push_back(&victim);
      }
    }
    for (const auto& [queue, victims] : lent) CheckBorrowed(queue, victims);
  }

 private:
  std::string Describe(const Job& job) const {
    return fmt::format("queue {}, priority {}", snapshot_.queues[job.queue].name, job.priority);
  }

  bool OnLeavingNode(const Job& job) const {
    const auto leaves = [&](const Placed& placed) {
      return snapshot_.nodes[placed.node].state == NodeState::kDraining;
    };
    return std::any_of(job.placement.begin(), job.placement.end(), leaves) ||
           std::any_of(job.target.begin(), job.target.end(), leaves);
  }

  bool OnVanishingNode(const Job& job) const {
    const auto vanishes = [&](const Placed& placed) {
      const Node& node = snapshot_.nodes[placed.node];
      return node.state == NodeState::kDraining && node.until != kNever;
    };
    return std::any_of(job.placement.begin(), job.placement.end(), vanishes) ||
           std::any_of(job.target.begin(), job.target.end(), vanishes);
  }

  void CheckWithoutPreemptor(const Victim& victim) {
    const Job& job = *victim.job;
    const bool leaves = OnLeavingNode(job);
    const bool saves = job.checkpoints && job.checkpoint_cost_ms <= job.grace_ms;
    const bool over = saves && UserIsOverCap(job);
    if (victim.stop == nullptr) {
      if (!leaves && !over) cycle_.Report("job {} is shrunk on behalf of nobody", job.id);
    } else if (victim.stop->reason == StopReason::kNodeLeaving) {
      if (!leaves) cycle_.Report("job {} is stopped, although none of its nodes leaves", job.id);
      if (leaves && !job.checkpoints && !OnVanishingNode(job))
        cycle_.Report("job {} cannot save its work and is stopped for a node that would wait",
                      job.id);
    } else if (victim.stop->reason == StopReason::kOverCap) {
      if (!over)
        cycle_.Report("job {} is stopped for a cap that holds without it, or does not checkpoint",
                      job.id);
    } else {
      cycle_.Report("job {} is stopped ({}) on behalf of nobody", job.id,
                    NameOf(victim.stop->reason));
    }
  }

  // With everybody else gone who is stopped for the cap, `job` is still one too many.
  bool UserIsOverCap(const Job& job) const {
    int64_t in_use = 0;
    for (const Job& other : snapshot_.jobs)
      if (other.user == job.user) in_use += Of(snapshot_, other, CountedWorkers(other)).gpu();
    int64_t least = 0;  // what is set free, without the largest
    for (const Victim& victim : victims_) {
      if (victim.job->user != job.user || victim.on_behalf_of != 0) continue;
      if (victim.stop != nullptr && victim.stop->reason != StopReason::kOverCap) continue;
      in_use -= victim.amount.gpu();
      least = std::max(least, victim.amount.gpu());
    }
    return in_use + least > snapshot_.users[job.user].CapAt(snapshot_.now);
  }

  // Workers beyond a minimum yield to equal priority too.
  static bool YieldsByPriority(const Victim& victim, const Job& preemptor) {
    return victim.job->priority < preemptor.priority + (victim.stop == nullptr);
  }

  // The rules that do not ask what queues have borrowed.
  bool MayBeFrom(const Victim& victim, const Job& preemptor) const {
    const bool shrink = victim.stop == nullptr;
    const StopReason reason = shrink ? StopReason::kPreempted : victim.stop->reason;
    if ((shrink || reason == StopReason::kGrandChallenge) && preemptor.grand_challenge) return true;
    if ((shrink || reason == StopReason::kReservation) && victim.job->backfilled) return true;
    return (shrink || reason == StopReason::kPreempted) && victim.job->queue == preemptor.queue &&
           YieldsByPriority(victim, preemptor);
  }

  // Between queues: the preemptor's queue takes its own, or the preemptor's priority is higher.
  // That the victim's queue borrows is CheckBorrowed's question.
  bool IsOwed(const Victim& victim, const Job& preemptor) const {
    if (victim.job->queue == preemptor.queue) return false;
    const bool shrink = victim.stop == nullptr;
    const bool reclaim = shrink || victim.stop->reason == StopReason::kReclaimed;
    const bool preempt = shrink || victim.stop->reason == StopReason::kPreempted;
    return (reclaim && StaysWithinGuarantee(preemptor)) ||
           (preempt && YieldsByPriority(victim, preemptor));
  }

  bool ExceedsGuarantee(int queue, const Resources& in_use) const {
    for (int kind = 0; kind < kMaxResources; ++kind)
      if (governed_[kind] && in_use[kind] > snapshot_.queues[queue].guaranteed[kind]) return true;
    return false;
  }

  Resources InUse(int queue) const {
    Resources in_use;
    for (const Job& job : snapshot_.jobs)
      if (job.queue == queue) in_use += Of(snapshot_, job, CountedWorkers(job));
    return in_use;
  }

  // The job's place is being vacated or booted: it has as good as started.
  bool IsPipelined(JobId id) const {
    const auto wait = cycle_.waits.find(id);
    return wait != cycle_.waits.end() && (wait->second->reason == WaitReason::kPipelined ||
                                          wait->second->reason == WaitReason::kNodesBooting);
  }

  // With the preemptor started at its minimum, beside those of its queue that others were stopped
  // for before it and without any of its queue that are stopped. What starts in the same cycle is
  // left out: nothing tells whether it was considered earlier.
  bool StaysWithinGuarantee(const Job& preemptor) const {
    const int queue = preemptor.queue;
    Resources in_use = InUse(queue);
    for (const Victim& victim : victims_)
      if (victim.job->queue == queue) in_use -= victim.amount;
    for (const Wait& wait : cycle_.decisions.waits) {
      if (wait.job == preemptor.id) break;
      const Job& job = *snapshot_.Find(wait.job);
      if (job.queue == queue && preemptors_.count(job.id) > 0)
        in_use += Of(snapshot_, job, job.min_workers);
    }
    return !ExceedsGuarantee(queue, in_use + Of(snapshot_, preemptor, preemptor.min_workers));
  }

  // A queue's loans are taken back only while it borrows: then it still did before the last one. As
  // more in use is more borrowed, some order is right if any one of them can have been the last.
  void CheckBorrowed(int queue, const std::vector<const Victim*>& victims) {
    // Where nothing is guaranteed or limited, everything is borrowed.
    if (std::none_of(governed_.begin(), governed_.end(), [](bool is) { return is; })) return;
    Resources in_use = InUse(queue);
    for (const Job& job : snapshot_.jobs) {
      if (job.queue != queue) continue;
      if (const auto start = cycle_.starts.find(job.id); start != cycle_.starts.end())
        in_use += Of(snapshot_, job, NumWorkers(start->second->placement));
      else if (IsPipelined(job.id))
        in_use += Of(snapshot_, job, job.min_workers);
    }
    for (const Victim* victim : victims) in_use -= victim->amount;
    const bool right = std::any_of(victims.begin(), victims.end(), [&](const Victim* last) {
      return ExceedsGuarantee(queue, in_use + last->amount);
    });
    if (right) return;
    std::string jobs;
    for (const Victim* victim : victims) jobs += fmt::format(" {}", victim->job->id);
    cycle_.Report("queue {} does not borrow so much that all of these may be taken:{}",
                  snapshot_.queues[queue].name, jobs);
  }

  Cycle& cycle_;
  const Snapshot& snapshot_;
  std::array<bool, kMaxResources> governed_{};
  std::vector<Victim> victims_;
  std::set<JobId> preemptors_;
};

}  // namespace

void CheckRights(Cycle& cycle) { Rights(cycle).Check(); }

}  // namespace renzan::cluster::check
