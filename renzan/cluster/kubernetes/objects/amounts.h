#pragma once

// Converts amounts of resources between the API's form ({"cpu": "500m", "nvidia.com/gpu": "8"}) and
// the scheduler's (core/resources.h).

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::kubernetes {

// Keyed by the API's name: cpu in thousandths of a core, all others in whole units (bytes).
using Amounts = std::map<std::string, int64_t>;

// Values that are not quantities are left out: the server has checked them.
Amounts AmountsOf(const nlohmann::json& quantities);
// As it was written: "500m", "8".
std::string QuantityText(const nlohmann::json& quantity);
// Whether the scheduler counts the resource.
bool IsCounted(const std::string& api_name);
// Throws Error kConfig for a value that is not a quantity, or is more than can be counted. `where`:
// "spec.limit".
void CheckAmounts(const nlohmann::json& quantities, const std::string& where);
// A sum that is too large becomes the largest number: one that wrapped around would be a request
// that frees resources.
Amounts& operator+=(Amounts& a, const Amounts& b);

// What the scheduler counts for a pod: the larger of all containers' requests together and any init
// container's request, plus the pod's overhead; and one of "pods". A missing request defaults to
// the limit.
Amounts PodRequest(const nlohmann::json& pod_spec);

// The snapshot's kinds are cpu, memory, gpu, "pods", and extended resources (names with a slash) in
// the order in which they first appear, as far as there is room (kMaxResources).
inline constexpr const char* kPodsResource = "pods";

// For a node: rounded down, without resources that the scheduler does not count (disks, huge
// pages). Adds kinds to the snapshot.
Resources CapacityFrom(const Amounts& amounts, Snapshot& snapshot);
// Amounts of some of the snapshot's kinds, in the API's form: {"cpu": "1500m", "memory": "512Mi"}.
nlohmann::json QuantitiesOf(const Resources& resources, const std::vector<int>& kinds,
                            const Snapshot& snapshot);
// "8 nvidia.com/gpu"
std::string QuantityWithName(int64_t amount, int kind, const Snapshot& snapshot);
// The index of a kind by the API's name; -1 if the snapshot does not have it.
int KindOf(const std::string& api_name, const Snapshot& snapshot);
// For a worker: rounded up. Throws Error kConfig if it needs a kind that no node has, or more than
// can be counted.
Resources RequestFrom(const Amounts& amounts, const Snapshot& snapshot);

}  // namespace renzan::cluster::kubernetes
