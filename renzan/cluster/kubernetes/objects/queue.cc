#include "renzan/cluster/kubernetes/objects/queue.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/time_text.h"
#include "renzan/cluster/spec/fair_share.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {

using nlohmann::json;

namespace {

constexpr TimeMs kUnsureMs = 10 * kSecond;

Amounts ReadAmounts(const json& quantities, const char* where) {
  CheckAmounts(quantities, where);
  Amounts amounts = AmountsOf(quantities);
  for (const auto& [name, amount] : amounts)
    if (!IsCounted(name))
      Fail(ErrorCode::kConfig,
           "{} has {}, which is not counted: leave it out (cpu, memory, pods and resources with a "
           "slash in their name are, such as nvidia.com/gpu)",
           where, name);
  return amounts;
}

// "max_priority" as "maxPriority".
std::string InCamelCase(const std::string& key) {
  std::string text;
  for (const char letter : key)
    if (!text.empty() && text.back() == '_')
      text.back() = static_cast<char>(letter - 'a' + 'A');
    else
      text += letter;
  return text;
}

// The keys of cluster.yaml for the same, whose reader checks their values.
QueueRights RightsFrom(const json& spec) {
  QueueRights rights;
  const auto describe = [&](ConfigFields& fields) {
    spec::DescribeRights(fields, rights, /*namespaces=*/true);
  };
  json keys = json::object();
  for (const ConfigValue& each : ListConfig(describe)) {
    const std::string& key = each.path.front();
    if (const json& value = At(spec, {InCamelCase(key)}); !value.is_null()) keys[key] = value;
  }
  ReadConfigText(keys.dump(), "spec", {}, describe);
  return rights;
}

std::optional<FairShare> FairShareFrom(const json& spec) {
  const json& fair_share = At(spec, {"fairShare"});
  if (fair_share.is_null()) return std::nullopt;
  json keys = json::object();
  if (const json& half_life = At(fair_share, {"halfLife"}); !half_life.is_null())
    keys["half_life"] = half_life;
  std::string half_life = "0s";
  ReadConfigText(json{{"fair_share", keys}}.dump(), "spec", {},
                 [&](ConfigFields& fields) { spec::DescribeFairShare(fields, &half_life); });
  return spec::FairShareOf(half_life);
}

std::string ParentFrom(const json& spec) {
  const json& parent = At(spec, {"parent"});
  if (!parent.is_null() && !parent.is_string())
    Fail(ErrorCode::kConfig, "spec.parent is {}: it must be the name of another Queue",
         parent.dump());
  return TextAt(spec, {"parent"});
}

}  // namespace

QueueSpec QueueSpecFrom(const json& spec) {
  const json &guaranteed = At(spec, {"guaranteed"}), &limit = At(spec, {"limit"});
  const QueueSpec queue{.guaranteed = ReadAmounts(guaranteed, "spec.guaranteed"),
                        .limit = ReadAmounts(limit, "spec.limit"),
                        .parent = ParentFrom(spec),
                        .rights = RightsFrom(spec),
                        .fair_share = FairShareFrom(spec)};
  for (const auto& [name, amount] : queue.guaranteed)
    if (const auto most = queue.limit.find(name);
        most != queue.limit.end() && amount > most->second)
      Fail(ErrorCode::kConfig,
           "spec.guaranteed has {} {}, and spec.limit only {}: raise the limit, or lower the "
           "guarantee",
           QuantityText(guaranteed[name]), name, QuantityText(limit[name]));
  return queue;
}

QueueSpec WithoutGuarantee(const json& spec) {
  QueueRights rights{.members = QueueMembers()};
  try {
    rights = RightsFrom(spec);
  } catch (const Error&) {
    // Its status says what is wrong.
  }
  QueueSpec queue{.limit = AmountsOf(At(spec, {"limit"})),
                  .parent = TextAt(spec, {"parent"}),
                  .rights = std::move(rights)};
  try {
    queue.fair_share = FairShareFrom(spec);
  } catch (const Error&) {
    // Likewise.
  }
  return queue;
}

QueueSpec HoldingQueueSpec(const json& object) {
  const json& spec = At(object, {"spec"});
  try {
    return QueueSpecFrom(spec);
  } catch (const Error&) {
    // Its status says what is wrong.
  }
  try {
    const std::string held = TextAt(object, {"status", "holds"});
    return held.empty() ? WithoutGuarantee(spec) : QueueSpecFrom(json::parse(held));
  } catch (const std::exception&) {
    return WithoutGuarantee(spec);
  }
}

bool NeedsSubmitters(const QueueRights& rights) {
  return rights.members && !(rights.members->users.empty() && rights.members->groups.empty());
}

std::optional<TimeMs> MembersCheckedSince(const json& status) {
  for (const json& condition : At(status, {"conditions"}))
    if (TextAt(condition, {"type"}) == kMembersChecked)
      return TextAt(condition, {"status"}) == "True"
                 ? ParseTime(TextAt(condition, {"lastTransitionTime"})).value_or(kNever)
                 : kNever;
  return std::nullopt;
}

spec::Submitter::Checked WasSubmitterChecked(const json& status, TimeMs entered) {
  using Checked = spec::Submitter::Checked;
  const std::optional<TimeMs> since = MembersCheckedSince(status);
  if (since == kNever) return Checked::kNo;
  return since && entered >= *since + kUnsureMs ? Checked::kYes : Checked::kTooEarly;
}

}  // namespace renzan::cluster::kubernetes
