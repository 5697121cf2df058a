#include "renzan/cluster/kubernetes/controller/namespace_rights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "renzan/base/log.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

struct NeededRight {
  const char *verb, *group, *resource, *subresource;
};

// What a gang needs, as the ClusterRole renzan-controller-jobs has it.
constexpr std::array kNeeded = {
    NeededRight{"create", "", "pods", ""},
    NeededRight{"delete", "", "pods", ""},
    NeededRight{"patch", "", "pods", ""},
    NeededRight{"create", "", "pods", "binding"},
    NeededRight{"get", "", "services", ""},
    NeededRight{"create", "", "services", ""},
    NeededRight{"get", "", "persistentvolumeclaims", ""},
    NeededRight{"update", kGroup, "gangjobs", "finalizers"},
};

constexpr TimeMs kAgainMs = kMinute;
// Somebody may be about to grant it.
constexpr TimeMs kAgainWithoutMs = 10 * kSecond;

// One question; its answer.
struct RightReview : Task {
  std::string ns;
  const NeededRight* right;
  bool allowed = false;
};

std::string WhyRightIsMissing(const NeededRight& right, const std::string& ns) {
  return fmt::format(
      "{} {} {}{}{} in namespace '{}': an administrator may bind the ClusterRole "
      "renzan-controller-jobs to it there (docs/kubernetes.md, \"Rights by namespace\"), and the "
      "job starts by itself",
      kLacksRight, right.verb, right.resource, *right.subresource == '\0' ? "" : "/",
      right.subresource, ns);
}

}  // namespace

bool NamespaceRights::Refresh(const std::set<std::string>& namespaces, Requests& requests,
                              TimeMs now) {
  if (!limited_) return false;
  std::erase_if(answers_, [&](const auto& each) {
    return now >= each.second.ask_again && !namespaces.contains(each.first);
  });
  std::vector<RightReview> reviews;
  for (const std::string& ns : namespaces) {
    const auto at = answers_.find(ns);
    if (at != answers_.end() && now < at->second.ask_again) continue;
    for (const NeededRight& right : kNeeded) {
      RightReview& review = reviews.emplace_back();
      review.ns = ns;
      review.right = &right;
    }
  }
  RunAll(requests, reviews, [](Api& api, RightReview& review) {
    const NeededRight& right = *review.right;
    const Json answer = api.Create(OwnAccessReviews(), "",
                                   {{"spec",
                                     {{"resourceAttributes",
                                       {{"namespace", review.ns},
                                        {"verb", right.verb},
                                        {"group", right.group},
                                        {"resource", right.resource},
                                        {"subresource", right.subresource}}}}}});
    review.allowed = IsTrueAt(answer, {"status", "allowed"});
  });
  bool changed = false;
  for (auto at = reviews.begin(); at != reviews.end(); at += kNeeded.size()) {
    const auto end = at + kNeeded.size();
    Answer& answer = answers_[at->ns];
    answer.ask_again = now + kAgainWithoutMs;
    const auto failed =
        std::find_if(at, end, [](const RightReview& each) { return bool(each.error); });
    if (failed != end) {
      LogWarning("{}", failed->error->what());
      continue;  // what was known still holds
    }
    const auto missing =
        std::find_if(at, end, [](const RightReview& each) { return !each.allowed; });
    const std::string why_not = missing == end ? "" : WhyRightIsMissing(*missing->right, at->ns);
    if (missing == end) answer.ask_again = now + kAgainMs;
    changed |= !answer.known || answer.why_not != why_not;
    answer = {.known = true, .why_not = why_not, .ask_again = answer.ask_again};
  }
  return changed;
}

TimeMs NamespaceRights::NextAsk() const {
  TimeMs next = kNever;
  for (const auto& [ns, answer] : answers_) next = std::min(next, answer.ask_again);
  return next;
}

std::string NamespaceRights::WhyNot(const std::string& ns) const {
  if (!limited_) return "";
  const auto at = answers_.find(ns);
  if (at != answers_.end() && at->second.known) return at->second.why_not;
  return fmt::format(
      "the API server has not said yet whether the controller may run pods in "
      "namespace '{}'",
      ns);
}

}  // namespace renzan::cluster::kubernetes
