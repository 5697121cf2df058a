#pragma once

// Fair share of a queue (core/order/fair_share.h) as its configuration says it, in `cluster.yaml`
// and, in camel case, in a Queue on Kubernetes.

#include <optional>
#include <string>

#include "renzan/base/config/config.h"
#include "renzan/cluster/core/snapshot.h"

namespace renzan::cluster::spec {

// "0s": users make no difference.
void DescribeFairShare(ConfigFields& fields, std::string* half_life);
std::optional<FairShare> FairShareOf(const std::string& half_life);

}  // namespace renzan::cluster::spec
