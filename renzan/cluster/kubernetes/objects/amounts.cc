#include "renzan/cluster/kubernetes/objects/amounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "renzan/base/error.h"
#include "renzan/cluster/kubernetes/objects/kinds.h"
#include "renzan/cluster/kubernetes/objects/quantity.h"
#include "renzan/cluster/spec/json_fields.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
// Keeps sums over all nodes and all queues within range.
constexpr int64_t kMostOffered = kLargest / 1024;
// Keeps sums over all workers of all jobs within range: 10,000 jobs of 100,000 workers.
constexpr int64_t kMostRequested = kLargest / 1'000'000'000;

// The scheduler's name of a kind; "" if it does not count it.
std::string NameOfKind(const std::string& name) {
  if (name == kGpuResource) return "gpu";
  if (name == "cpu" || name == "memory" || name == kPodsResource) return name;
  return name.find('/') != std::string::npos ? name : "";
}

std::string ApiName(const std::string& name) { return name == "gpu" ? kGpuResource : name; }

std::string TextOf(int64_t amount, int kind) {
  if (kind == kCpu && amount % 1000 != 0) return fmt::format("{}m", amount);
  if (kind == kCpu) return fmt::format("{}", amount / 1000);
  if (kind != kMemory || amount == 0) return fmt::format("{}", amount);
  return amount % 1024 == 0 ? fmt::format("{}Gi", amount / 1024) : fmt::format("{}Mi", amount);
}

int Find(const std::string& name, const Snapshot& snapshot) {
  const auto& names = snapshot.resource_names;
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

Amounts RequestOf(const json& container) {
  Amounts requests = AmountsOf(At(container, {"resources", "limits"}));
  for (const auto& [name, amount] : AmountsOf(At(container, {"resources", "requests"})))
    requests[name] = amount;
  return requests;
}

std::optional<int64_t> AmountFrom(const std::string& name, const json& quantity) {
  const std::string text = QuantityText(quantity);
  return name == "cpu" ? ParseMilli(text) : ParseUnits(text);
}

}  // namespace

Amounts AmountsOf(const json& quantities) {
  Amounts amounts;
  if (!quantities.is_object()) return amounts;
  for (const auto& [name, quantity] : quantities.items())
    if (const auto amount = AmountFrom(name, quantity)) amounts[name] = *amount;
  return amounts;
}

std::string QuantityText(const json& quantity) {
  return quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
}

bool IsCounted(const std::string& api_name) { return !NameOfKind(api_name).empty(); }

void CheckAmounts(const json& quantities, const std::string& where) {
  if (!quantities.is_object()) return;
  for (const auto& [name, quantity] : quantities.items()) {
    const auto amount = AmountFrom(name, quantity);
    if (!amount)
      Fail(ErrorCode::kConfig, "{}: {} of {} is not a quantity: write it as 8, 500m or 64Gi", where,
           QuantityText(quantity), name);
    if (*amount == kLargest || (name == "memory" ? *amount / kMebibyte : *amount) > kMostOffered)
      Fail(ErrorCode::kConfig, "{}: {} of {} is more than can be counted: lower it", where,
           QuantityText(quantity), name);
  }
}

Amounts& operator+=(Amounts& a, const Amounts& b) {
  for (const auto& [name, amount] : b) {
    int64_t& sum = a[name];
    if (__builtin_add_overflow(sum, amount, &sum)) sum = kLargest;
  }
  return a;
}

Amounts PodRequest(const json& pod_spec) {
  Amounts request;
  for (const json& container : At(pod_spec, {"containers"})) request += RequestOf(container);
  for (const json& container : At(pod_spec, {"initContainers"}))
    for (const auto& [name, amount] : RequestOf(container))
      request[name] = std::max(request[name], amount);
  request += AmountsOf(At(pod_spec, {"overhead"}));
  request[kPodsResource] = 1;
  return request;
}

Resources CapacityFrom(const Amounts& amounts, Snapshot& snapshot) {
  Resources capacity;
  for (const auto& [api_name, amount] : amounts) {
    const std::string name = NameOfKind(api_name);
    if (name.empty()) continue;
    int kind = Find(name, snapshot);
    if (kind < 0) {
      if (snapshot.resource_names.size() == kMaxResources) continue;
      kind = static_cast<int>(snapshot.resource_names.size());
      snapshot.resource_names.push_back(name);
    }
    capacity[kind] = std::min(kind == kMemory ? amount / kMebibyte : amount, kMostOffered);
  }
  return capacity;
}

json QuantitiesOf(const Resources& resources, const std::vector<int>& kinds,
                  const Snapshot& snapshot) {
  json quantities = json::object();
  for (const int kind : kinds)
    quantities[ApiName(snapshot.resource_names[kind])] = TextOf(resources[kind], kind);
  return quantities;
}

std::string QuantityWithName(int64_t amount, int kind, const Snapshot& snapshot) {
  return TextOf(amount, kind) + " " + ApiName(snapshot.resource_names[kind]);
}

int KindOf(const std::string& api_name, const Snapshot& snapshot) {
  const std::string name = NameOfKind(api_name);
  return name.empty() ? -1 : Find(name, snapshot);
}

Resources RequestFrom(const Amounts& amounts, const Snapshot& snapshot) {
  Resources request;
  for (const auto& [api_name, amount] : amounts) {
    const std::string name = NameOfKind(api_name);
    if (name.empty() || amount == 0) continue;
    const int kind = Find(name, snapshot);
    if (kind < 0) Fail(ErrorCode::kConfig, "no node has any {}", api_name);
    request[kind] = kind == kMemory ? amount / kMebibyte + (amount % kMebibyte != 0) : amount;
    if (request[kind] > kMostRequested)
      Fail(ErrorCode::kConfig, "no node has so much {}", api_name);
  }
  return request;
}

}  // namespace renzan::cluster::kubernetes
