#include "renzan/cluster/kubernetes/controller/use_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "renzan/cluster/core/order/fair_share.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr TimeMs kBetweenTold = kMinute;
constexpr double kNothing = 1e-3;  // seconds

}  // namespace

void UseBook::Recover(const std::string& queue, const json& status) {
  const json& lately = At(status, {"usedLately"});
  const std::optional<TimeMs> as_of = ParseTime(TextAt(lately, {"asOf"}));
  if (!as_of || queues_.contains(queue)) return;
  const std::string of = TextAt(lately, {"of"});
  if (counted_.empty()) counted_ = of;
  Use& its = queues_[queue][of];
  its.as_of = *as_of;
  for (const auto& [ns, text] : At(lately, {"seconds"}).items()) {
    if (!text.is_string()) continue;
    const auto& digits = text.get_ref<const std::string&>();
    double seconds = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
    if (seconds > 0) its.seconds[ns] = seconds;
  }
}

void UseBook::Count(TimeMs now, Snapshot& snapshot) {
  const int kind = KindThatCounts(snapshot);
  counted_ = snapshot.resource_names[kind];
  std::vector<std::vector<const Job*>> running(snapshot.queues.size());
  for (const Job& job : snapshot.jobs)
    if (!job.placement.empty()) running[job.queue].push_back(&job);
  for (size_t at = 0; at < snapshot.queues.size(); ++at) {
    Queue& queue = snapshot.queues[at];
    if (!queue.fair_share) {
      queues_.erase(queue.name);
      continue;
    }
    const TimeMs half_life = queue.fair_share->half_life;
    Use& its = queues_[queue.name].try_emplace(counted_, Use{.as_of = now}).first->second;
    its.as_of = std::min(its.as_of, now);  // an earlier leader's clock may have been ahead
    if (!running[at].empty() && now > its.as_of) {
      for (auto& [ns, seconds] : its.seconds)
        seconds = Decayed(seconds, now - its.as_of, half_life);
      std::erase_if(its.seconds, [](const auto& used) { return used.second < kNothing; });
      for (const Job* job : running[at])
        its.seconds[snapshot.users[job->user].name] +=
            DecayedUse(UsePerSecond(snapshot, *job, NumWorkers(job->placement), kind),
                       std::max<TimeMs>(0, now - std::max(its.as_of, job->started)), half_life);
      its.as_of = now;
    }
    const std::map<std::string, double> seconds = Of(queue.name, half_life, now);
    queue.fair_share->used.clear();
    for (int user = 0; user < static_cast<int>(snapshot.users.size()); ++user)
      if (const auto used = seconds.find(snapshot.users[user].name); used != seconds.end())
        queue.fair_share->used.push_back({user, used->second});
  }
}

const UseBook::Use* UseBook::Find(const std::string& queue) const {
  const auto of_queue = queues_.find(queue);
  if (of_queue == queues_.end()) return nullptr;
  const auto use = of_queue->second.find(counted_);
  return use == of_queue->second.end() ? nullptr : &use->second;
}

std::map<std::string, double> UseBook::Of(const std::string& queue, TimeMs half_life,
                                          TimeMs now) const {
  const Use* its = Find(queue);
  if (its == nullptr) return {};
  std::map<std::string, double> all = its->seconds;
  for (auto& [ns, seconds] : all)
    seconds = Decayed(seconds, std::max<TimeMs>(0, now - its->as_of), half_life);
  return all;
}

std::shared_ptr<const json> UseBook::StatusOf(const std::string& queue, TimeMs now) {
  if (Find(queue) == nullptr) return nullptr;
  Use& its = queues_[queue][counted_];
  if (its.told && now - its.told_at < kBetweenTold) return its.told;
  json seconds = json::object();
  for (const auto& [ns, used] : its.seconds) seconds[ns] = fmt::format("{}", used);
  its.told = std::make_shared<const json>(
      json{{"asOf", MicroTimeText(static_cast<double>(its.as_of) / 1000)},
           {"of", counted_},
           {"seconds", std::move(seconds)}});
  its.told_at = now;
  return its.told;
}

}  // namespace renzan::cluster::kubernetes
