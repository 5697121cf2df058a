// What only operators may do. Each leaves a line in the daemon's log: who did what.

#include <algorithm>

#include "renzan/base/counted.h"
#include "renzan/base/log.h"
#include "renzan/cluster/local/controller/controller.h"

namespace renzan::cluster::local {

void Controller::Cordon(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  nodes_.Cordon(name);
  LogInfo("{} has cordoned node {}", caller.name, name);
}

void Controller::Drain(const std::string& name, std::optional<TimeMs> notice_ms,
                       const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = nodes_.Drain(name, notice_ms);
  if (notice_ms) runner_.ShortenGraceOn(node);
  LogInfo("{} drains node {}{}", caller.name, name,
          notice_ms ? fmt::format(", which goes away in {} s", *notice_ms / 1000) : "");
}

void Controller::FailNode(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  const int node = nodes_.MarkFailed(name);
  LogInfo("{} has declared node {} failed", caller.name, name);
  runner_.EndWorkersOn(node);
}

std::string Controller::Restore(const std::string& name, const Caller& caller) {
  access_.RequireOperator(caller);
  std::vector<std::string> first;
  if (!nodes_.Restore(name)) first.emplace_back("its old workers have ended");
  if (const std::string why_not = checker_.WhyNot(nodes_.Find(name)); !why_not.empty())
    first.push_back(fmt::format("it passes its health check, which runs again now ({})", why_not));
  std::string until = fmt::format("{}", fmt::join(first, " and "));
  LogInfo("{} has restored node {}{}", caller.name, name,
          until.empty() ? "" : ": it is ready once " + until);
  return until;
}

void Controller::OverrideQuota(const std::string& user, int64_t max_gpus, TimeMs for_ms,
                               const Caller& caller) {
  access_.RequireOperator(caller);
  std::vector<User>& users = state_.snapshot.users;
  const auto at =
      std::find_if(users.begin(), users.end(), [&](const User& each) { return each.name == user; });
  if (at == users.end() || at->max_gpus == kUnlimited)
    Fail(ErrorCode::kUsage,
         "user {} has no cap that could be raised: caps are set in the configuration (users: {{{}: "
         "{{max_gpus: 8}}}})",
         user, user);
  if (max_gpus <= at->max_gpus)
    Fail(ErrorCode::kUsage, "user {} already has a cap of {}; an override must be higher", user,
         Counted(at->max_gpus, "GPU"));
  const QuotaOverrideRecord quota_override{user, {.max_gpus = max_gpus, .until = Now() + for_ms}};
  store_.Transact([&] { store_.Put(quota_override); });
  at->quota_overrides.push_back(quota_override.quota_override);
  state_.needs_scheduling = true;
  LogInfo("{} has raised the cap of user {} to {} for {} s", caller.name, user,
          Counted(max_gpus, "GPU"), for_ms / 1000);
}

}  // namespace renzan::cluster::local
