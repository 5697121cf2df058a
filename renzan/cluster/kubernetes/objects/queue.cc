#include "renzan/cluster/kubernetes/objects/queue.h"

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/json_fields.h"

namespace renzan::cluster::kubernetes {

using nlohmann::json;

namespace {

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

bool TakesNotPreemptible(const json& spec) {
  const json& value = At(spec, {"notPreemptible"});
  return !value.is_boolean() || value.get<bool>();
}

}  // namespace

QueueSpec QueueSpecFrom(const json& spec) {
  const json &guaranteed = At(spec, {"guaranteed"}), &limit = At(spec, {"limit"});
  const QueueSpec queue{.guaranteed = ReadAmounts(guaranteed, "spec.guaranteed"),
                        .limit = ReadAmounts(limit, "spec.limit"),
                        .not_preemptible = TakesNotPreemptible(spec)};
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
  return {.guaranteed = {},
          .limit = AmountsOf(At(spec, {"limit"})),
          .not_preemptible = TakesNotPreemptible(spec)};
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

}  // namespace renzan::cluster::kubernetes
