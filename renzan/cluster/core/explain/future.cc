#include "renzan/cluster/core/explain/future.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "renzan/base/philox.h"
#include "renzan/cluster/core/engine/gang.h"
#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/core/predict/run_times.h"

namespace renzan::cluster {
namespace {

// Each batch of events may last longer than the one before by this share of the time since the
// beginning: so n cycles reach kHorizon, and most of them are for what comes soon.
double GrowthFor(int cycles) { return 50.0 / cycles / cycles; }
// Of one future. Later ones would hardly change the answer, and the snapshot must not grow for
// ever.
constexpr int64_t kMostSubmitted = 1000;

enum Key : uint64_t { kOrder = 1, kRunTime, kSubmission, kUserOrder };  // of draws

double Uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1.0p-32; }

// A user's jobs that were submitted at about the same time run alike, beyond what was learned of
// them. On the first half of the Philly trace, how long two of them will still run correlates by
// 0.57 within an hour, by 0.19 within six and hardly after a day (bench/run_times_bench). If each
// were drawn for itself, about as many would end in every future; if all of a user's were drawn
// alike, the first of them would end too late in most.
constexpr TimeMs kAlike = 6 * kHour;

// In (0, 1): in another ninth for each future, in an order that is the job's own or, in three
// futures of four, its user's of these six hours: so two jobs correlate by up to 9/16.
double DrawFor(const Job& job, int future) {
  constexpr std::array<int, 6> kStrides = {1, 2, 4, 5, 7, 8};  // all coprime to kFutures
  static_assert(kFutures == 9);
  const auto id = static_cast<uint64_t>(job.id), number = static_cast<uint64_t>(future);
  const auto user = static_cast<uint64_t>(job.queue) << 32 | static_cast<uint64_t>(job.user);
  const auto submitted = static_cast<uint64_t>(job.submitted / kAlike);
  const Philox::Block draw = Philox::Draw(kRunTime, id, number);
  const bool is_like_others = draw[1] % 4 != 0;
  const Philox::Block order =
      is_like_others ? Philox::Draw(kUserOrder, user, submitted) : Philox::Draw(kOrder, id);
  const uint32_t first = order[0] % kFutures, stride = kStrides[order[1] % kStrides.size()];
  const uint32_t part = (first + stride * static_cast<uint32_t>(future)) % kFutures;
  // Run times have no longest; one in a hundred thousand is as long as they get here.
  return std::min((part + Uniform(draw[0])) / kFutures, 1 - 1e-5);
}

// How much longer a job will run. If nothing is known of jobs like it, half of them are taken to
// run for an hour, or for as long again as so far, with the same tail as RemainingQuantile().
TimeMs Remaining(const Job& job, TimeMs progress, double share) {
  const RunTimeQuantiles& learned = LatestRunTime(job);
  if (learned.back() > 0) return RemainingQuantile(learned, progress, share);
  const auto half = static_cast<double>(std::max(kHour - progress, progress));
  return std::llround(half * share / (1 - share));
}

TimeMs StopTakes(const Job& job) {
  return job.checkpoints ? std::min(job.checkpoint_cost_ms, job.grace_ms) : 0;
}

}  // namespace

Future::Future(const Snapshot& snapshot, JobId awaited, const ScheduleOptions& options,
               const Submissions& submissions, int number)
    : snapshot_(snapshot),
      awaited_(awaited),
      options_(options),
      submissions_(submissions),
      number_(number),
      begin_(snapshot.now),
      batch_begin_(snapshot.now),
      last_submission_(snapshot.now) {
  // Interruptions are not part of the question.
  for (Pool& pool : snapshot_.pools) pool.interruptions_per_hour = 0;
  if (!snapshot_.jobs.empty()) last_job_ = snapshot_.jobs.back().id;
  for (const Job& job : snapshot_.jobs) Meet(job);
  ExpectSubmission();
}

Future::Outcome Future::Run(CycleBudget& budget, int max_cycles) {
  for (int cycle = 0; cycle < max_cycles && budget.Spend(); ++cycle) {
    const Decisions decisions = Schedule(snapshot_, options_);
    Expect({What::kCycle, 0}, decisions.look_again);
    const bool changed = CarryOut(decisions, snapshot_, *this);
    if (start_ != kNever) return Outcome::kStarts;
    FormLine(decisions);
    for (size_t node = 0; node < snapshot_.nodes.size(); ++node)
      if (const Node& each = snapshot_.nodes[node]; each.state == NodeState::kBooting)
        Expect({What::kNode, static_cast<int64_t>(node)}, each.until);
    if (Next() == kNever && changed) continue;
    if (!Advance(cycle * GrowthFor(max_cycles))) return Outcome::kNeverStarts;
    if (start_ != kNever) return Outcome::kStarts;
  }
  return Outcome::kOutOfCycles;
}

void Future::Expect(Subject subject, TimeMs when) {
  if (const auto known = when_.find(subject); known != when_.end()) {
    due_.erase({known->second, subject});
    when_.erase(known);
  }
  if (when == kNever) return;
  when_[subject] = when;
  due_.insert({when, subject});
}

// Handles the next events, within this share of the time since the beginning. False: there is none.
bool Future::Advance(double share) {
  if (Next() == kNever || Next() - begin_ > kHorizon) return false;
  batch_begin_ = std::max(Next(), snapshot_.now);
  const TimeMs end =
      batch_begin_ + std::llround(static_cast<double>(batch_begin_ - begin_) * share);
  while (Next() <= end && start_ == kNever) {
    const auto [when, subject] = *due_.begin();
    AdvanceTo(std::max(snapshot_.now, when), snapshot_);
    Expect(subject, kNever);
    Handle(subject);
  }
  return true;
}

void Future::Handle(Subject subject) {
  const auto [what, index] = subject;
  if (what == What::kJob) HandleJob(*snapshot_.Find(index));
  if (what == What::kNode) snapshot_.nodes[static_cast<size_t>(index)].state = NodeState::kReady;
  if (what == What::kSubmission) Submit();
}

void Future::HandleJob(Job& job) {
  switch (job.state) {
    case JobState::kPending:  // its back-off is over
      return;
    case JobState::kStopping:
      return RequeueGang(job, snapshot_.now);
    case JobState::kResizing:
      RestartGang(job, snapshot_.now);
      return Runs(job);
    case JobState::kRunning:
      break;
  }
  ++ends_.all;
  ends_.expected += job.expected_end.has_value();
  ends_.unlike += !job.expected_end && LatestRunTime(job).back() == 0;
  const Job ended = std::move(job);
  snapshot_.jobs.erase(snapshot_.jobs.begin() + (&job - snapshot_.jobs.data()));
  HandOver(ended);
}

void Future::FormLine(const Decisions& decisions) {
  const Ranks ranks(snapshot_, options_.levels);
  fair_shares_ = ranks.fair_shares();
  line_.clear();
  for (const Wait& wait : decisions.waits) {
    if (wait.reason != WaitReason::kResources && wait.reason != WaitReason::kFragmented) continue;
    const Job& job = *snapshot_.Find(wait.job);
    if (MayTakeOver(job))
      line_.push_back({ranks.Of(job), job.queue, job.id, job.request, job.min_workers});
  }
  free_ = FreeRoom(snapshot_);
}

// Whether nothing but room keeps it from starting: nobody counts what its queue and user use
// between cycles.
bool Future::MayTakeOver(const Job& job) const {
  const Queue& queue = snapshot_.queues[job.queue];
  return job.min_workers == job.max_workers && job.preemptible &&
         queue.limit == Queue::Unlimited() &&
         snapshot_.users[job.user].CapAt(snapshot_.now) == kUnlimited;
}

void Future::JoinLine(const Job& job) {
  if (!MayTakeOver(job)) return;
  const Snapshot alone{.now = snapshot_.now, .jobs = {job}};
  Rank rank = Ranks(alone, options_.levels).Of(alone.jobs[0]);
  if (fair_shares_) rank.use.level = fair_shares_->LevelOf(job.queue, job.user);
  const auto goes_before = [&](const Waiting& other) {
    return job.queue == other.queue ? rank < other.rank
                                    : rank.AmongQueues() < other.rank.AmongQueues();
  };
  auto place = line_.end();
  while (place != line_.begin() && goes_before(*std::prev(place))) --place;
  line_.insert(place, {rank, job.queue, job.id, job.request, job.min_workers});
}

// In the order of the queue: if the room only went to a job of the same size, large jobs would
// start before small ones that precede them, and all that follow would start late.
void Future::HandOver(const Job& ended) {
  const WorkerRequest& freed = snapshot_.worker_requests[ended.request];
  free_.GiveBack(freed, ended.placement);
  for (auto next = line_.begin(); next != line_.end() && free_.IsAnyLeft(freed, ended.placement);) {
    const std::optional<Placement> placement =
        free_.For(next->request, next->workers, ended, snapshot_);
    if (!placement) {
      ++next;
      continue;
    }
    Job& job = *snapshot_.Find(next->job);
    next = line_.erase(next);
    free_.Take(snapshot_.worker_requests[job.request], *placement);
    StartGang(job, *placement, false, snapshot_.now);
    if (job.id == awaited_) start_ = snapshot_.now;
    Runs(job);
  }
}

// What the future holds for a job as it is now.
void Future::Meet(const Job& job) {
  const TimeMs now = snapshot_.now, progress = ProgressOf(job, now);
  const double share = DrawFor(job, number_);
  run_times_[job.id] = progress + Remaining(job, progress, share);
  if (job.state == JobState::kPending) {
    if (job.eligible_at > now) Expect({What::kJob, job.id}, job.eligible_at);
  } else if (job.state == JobState::kRunning) {
    Runs(job);
  } else {  // nobody knows when it was told to stop
    Expect({What::kJob, job.id}, now + std::llround(static_cast<double>(StopTakes(job)) * share));
  }
}

void Future::Runs(const Job& job) {
  const TimeMs now = snapshot_.now;
  const TimeMs left = std::max<TimeMs>(1, run_times_.at(job.id) - ProgressOf(job, now));
  Expect({What::kJob, job.id}, job.expected_end ? std::max(*job.expected_end, now) : now + left);
}

void Future::ExpectSubmission() {
  if (submissions_.per_hour() == 0 || submitted_ == kMostSubmitted) return;
  const Philox::Block draw =
      Philox::Draw(kSubmission, static_cast<uint64_t>(number_), static_cast<uint64_t>(submitted_));
  last_submission_ += std::llround(-std::log(Uniform(draw[0])) * kHour / submissions_.per_hour());
  Expect({What::kSubmission, 0}, last_submission_);
}

void Future::Submit() {
  const Philox::Block draw = Philox::Draw(kSubmission, static_cast<uint64_t>(number_),
                                          static_cast<uint64_t>(submitted_++));
  Job job = submissions_.Draw(Uniform(draw[1]));
  job.id = ++last_job_;
  job.submitted = job.waiting_since = snapshot_.now;
  Meet(job);
  JoinLine(job);
  snapshot_.jobs.push_back(std::move(job));
  ExpectSubmission();
}

void Future::Perform(const Start& start) {
  // Some time within the batch: after the events of this cycle that it had to wait for.
  if (start.job == awaited_) start_ = batch_begin_ + (snapshot_.now - batch_begin_) / 2;
  Runs(*snapshot_.Find(start.job));
}

void Future::Perform(const Stop& stop) {
  const Job& job = *snapshot_.Find(stop.job);
  Expect({What::kJob, job.id}, snapshot_.now + StopTakes(job));
}

void Future::Perform(const Resize& resize) {
  const Job& job = *snapshot_.Find(resize.job);
  Expect({What::kJob, job.id}, snapshot_.now + StopTakes(job));
}

}  // namespace renzan::cluster
