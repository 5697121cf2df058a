#include "renzan/cluster/kubernetes/objects/node_pool.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "renzan/base/error.h"
#include "renzan/cluster/spec/amounts.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr int64_t kPodsUnlessStated = 110;  // the default of kubelets

double RealAt(const json& spec, const char* key) {
  const json& value = At(spec, {key});
  return value.is_number() ? value.get<double>() : 0;
}

TimeMs DurationAt(const json& spec, const char* key, TimeMs missing) {
  const json& value = At(spec, {key});
  if (!value.is_string()) return missing;
  const auto time = spec::TryParseMilliseconds(value.get<std::string>());
  if (!time) Fail(ErrorCode::kConfig, "spec.{} {}", key, spec::kDurationRule);
  return *time;
}

ScaleRef ScaleRefFrom(const json& object) {
  ScaleRef ref{.kind = Kind{.name = TextAt(object, {"kind"})},
               .ns = TextAt(object, {"namespace"}),
               .name = TextAt(object, {"name"})};
  const std::string version = TextAt(object, {"apiVersion"});
  const size_t slash = version.find('/');
  if (slash != std::string::npos) ref.kind.group = version.substr(0, slash);
  ref.kind.version = slash == std::string::npos ? version : version.substr(slash + 1);
  ref.kind.plural = TextAt(object, {"resource"});
  if (!ref.kind.plural.empty()) return ref;
  for (const char letter : ref.kind.name)
    ref.kind.plural += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  ref.kind.plural += 's';
  return ref;
}

void ReadSpec(const json& spec, NodePool& pool) {
  Pool& core = pool.pool;
  core.spot = IsTrueAt(spec, {"spot"});
  core.price_per_hour = RealAt(spec, "pricePerHour");
  core.interruptions_per_hour = RealAt(spec, "interruptionsPerHour");
  core.idle_ms = DurationAt(spec, "idle", core.idle_ms);
  if (const json& labels = At(spec, {"labels"}); labels.is_object())
    for (const auto& [key, value] : labels.items())
      if (value.is_string()) core.labels[key] = value.get<std::string>();
  pool.taints = TaintsFrom(At(spec, {"taints"}));
  CheckAmounts(At(spec, {"capacity"}), "spec.capacity");
  pool.capacity = AmountsOf(At(spec, {"capacity"}));
  const json& ref = At(spec, {"scaleRef"});
  if (!ref.is_object()) return;
  pool.capacity.emplace("pods", kPodsUnlessStated);
  // A node that was ready at once would get workers before it exists.
  core.boot_ms = std::max<TimeMs>(DurationAt(spec, "boot", 3 * kMinute), 1);
  core.min_nodes = static_cast<int>(NumberAt(spec, {"minNodes"}));
  core.max_nodes = static_cast<int>(NumberAt(spec, {"maxNodes"}));
  if (core.min_nodes > core.max_nodes)
    Fail(ErrorCode::kConfig, "spec.minNodes is {}, more than spec.maxNodes, which is {}",
         core.min_nodes, core.max_nodes);
  pool.scale = ScaleRefFrom(ref);
}

}  // namespace

NodePool NodePoolFrom(std::shared_ptr<const json> object) {
  NodePool pool{.name = TextAt(*object, {"metadata", "name"}),
                .generation = NumberAt(*object, {"metadata", "generation"})};
  try {
    ReadSpec(At(*object, {"spec"}), pool);
  } catch (const Error& error) {
    pool.invalid = error.what();
  }
  pool.pool.name = pool.name;
  for (const json& since : At(*object, {"status", "facts", "bootingSinceMs"}))
    if (since.is_number_integer()) pool.booting_since.push_back(since.get<TimeMs>());
  if (const json& idle = At(*object, {"status", "facts", "idleSinceMs"}); idle.is_object())
    for (const auto& [node, since] : idle.items())
      if (since.is_number_integer()) pool.idle_since[node] = since.get<TimeMs>();
  pool.object = std::move(object);
  return pool;
}

}  // namespace renzan::cluster::kubernetes
