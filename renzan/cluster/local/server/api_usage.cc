// What jobs have used, of all time or within a span.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/local/server/api_json.h"

namespace renzan::cluster::local {
namespace {

using Sums = std::map<QueueAndUser, UsageRecord>;
using NamedSums = std::map<std::string, UsageRecord>;

// The loop does other things in between.
constexpr int kSpansAtOnce = 5000;

std::pair<NamedSums, NamedSums> ByQueueAndByUser(const Sums& all) {
  NamedSums queues, users;
  for (const auto& [owner, usage] : all) {
    queues[owner.queue] += usage;
    users[owner.user] += usage;
  }
  return {queues, users};
}

Json UsersJson(const NamedSums& users) {
  Json list = Json::array();
  for (const auto& [name, usage] : users)
    list.push_back({{"name", name}, {"gpu_seconds", usage.gpu_seconds}, {"cost", usage.cost}});
  return list;
}

Json QueueUsersJson(const Sums& all) {
  Json list = Json::array();
  for (const auto& [owner, usage] : all)
    list.push_back({{"queue", owner.queue},
                    {"user", owner.user},
                    {"gpu_seconds", usage.gpu_seconds},
                    {"cost", usage.cost}});
  return list;
}

// What users have used lately of the queues with fair share.
Json FairSharesJson(Controller& controller) {
  const Snapshot& snapshot = controller.snapshot();
  const std::map<QueueAndUser, double> all = controller.usage().UsedLately(snapshot.now);
  Json shares = Json::array();
  for (const Queue& queue : snapshot.queues) {
    if (!queue.fair_share) continue;
    Json users = Json::array();
    for (const auto& [owner, seconds] : all)
      if (owner.queue == queue.name) users.push_back({{"name", owner.user}, {"seconds", seconds}});
    shares.push_back({{"queue", queue.name},
                      {"half_life_ms", queue.fair_share->half_life},
                      {"of", snapshot.resource_names[KindThatCounts(snapshot)]},
                      {"users", users}});
  }
  return shares;
}

// `now` is set to the time up to which what runs is counted.
Sums UsageWithin(Loop& loop, TimeMs from, TimeMs to, TimeMs& now) {
  Sums sums;
  const auto count = [&](const UsageSpan& span) {
    const UsageRecord used = UsedWithin(span, from, to);
    if (used.gpu_seconds > 0 || used.cost > 0) sums[{span.queue, span.user}] += used;
  };
  const std::vector<UsageSpan> running = loop.Run([&](Controller& controller) {
    now = controller.Now();
    return controller.RunningUsage();
  });
  // Those that end meanwhile must not count twice.
  std::set<std::pair<JobId, int>> counted;
  for (const UsageSpan& span : running) {
    counted.insert({span.job, span.attempt});
    count(span);
  }
  UsageSpanKey after{.ended = from - 1, .job = kNever};
  for (std::vector<UsageSpan> spans(kSpansAtOnce); spans.size() == kSpansAtOnce;) {
    spans = loop.Run([&](Controller& controller) {
      return controller.store().UsageSpansAfter(after, kSpansAtOnce);
    });
    for (const UsageSpan& span : spans)
      if (!counted.contains({span.job, span.attempt})) count(span);
    if (!spans.empty()) after = spans.back().key();
  }
  return sums;
}

// Which jobs and loans these are is not recorded by date.
ServerAnswer DatedUsage(const ApiContext& context, const ApiRequest& request) {
  const TimeMs from = NumberIn(request, "from", 0), to = NumberIn(request, "to", kNever);
  if (from >= to) throw BadRequest("from must be before to");
  TimeMs now = 0;
  const Sums all = UsageWithin(context.loop, from, to, now);
  const std::optional<TimeMs> dated_since =
      context.loop.Run([](Controller& controller) { return controller.store().UsageDatedSince(); });
  const auto [queues, users] = ByQueueAndByUser(all);
  Json by_queue = UsersJson(queues);
  for (Json& queue : by_queue) queue["borrowed_gpu_seconds"] = queue["lent"] = nullptr;
  return {.text = BodyOf({{"from", from},
                          {"to", std::min(to, now)},
                          {"incomplete_before",
                           dated_since && from < *dated_since ? Json(*dated_since) : Json()},
                          {"queues", by_queue},
                          {"users", UsersJson(users)},
                          {"queue_users", QueueUsersJson(all)}})};
}

}  // namespace

ServerAnswer ClusterUsage(const ApiContext& context, const ApiRequest& request) {
  if (request.query.contains("from") || request.query.contains("to"))
    return DatedUsage(context, request);
  JobList list;
  std::vector<UsageRecord> of_jobs;
  std::map<QueueAndUser, UsageRecord> all;
  std::vector<LoanRecord> loans;
  Json fair_shares;
  context.loop.Run([&](Controller& controller) {
    list = controller.List({.most_ended = kMaxEndedListed});
    for (const JobView& job : list.jobs) of_jobs.push_back(controller.usage().Of(job.record.id));
    all = controller.UsageUntilNow();
    loans = controller.usage().Loans();
    fair_shares = FairSharesJson(controller);
  });
  Json jobs = Json::array();
  for (size_t i = 0; i < of_jobs.size(); ++i) {
    const JobRecord& job = list.jobs[i].record;
    jobs.push_back({{"id", job.id},
                    {"queue", job.queue},
                    {"user", job.user},
                    {"gpu_seconds", of_jobs[i].gpu_seconds},
                    {"cost", of_jobs[i].cost}});
  }
  auto [queues, users] = ByQueueAndByUser(all);
  for (const LoanRecord& loan : loans) queues[loan.lender];
  Json by_queue = Json::array();
  for (const auto& [name, usage] : queues) {
    double borrowed = 0;
    Json lent = Json::array();
    for (const LoanRecord& loan : loans) {
      if (loan.borrower == name) borrowed += loan.gpu_seconds;
      if (loan.lender == name)
        lent.push_back({{"to", loan.borrower}, {"gpu_seconds", loan.gpu_seconds}});
    }
    by_queue.push_back({{"name", name},
                        {"gpu_seconds", usage.gpu_seconds},
                        {"cost", usage.cost},
                        {"borrowed_gpu_seconds", borrowed},
                        {"lent", lent}});
  }
  return {.text = BodyOf({{"jobs", jobs},
                          {"more_jobs", list.more},
                          {"queues", by_queue},
                          {"users", UsersJson(users)},
                          {"queue_users", QueueUsersJson(all)},
                          {"fair_shares", fair_shares}})};
}

}  // namespace renzan::cluster::local
