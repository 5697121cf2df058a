#pragma once

// Kubernetes's amounts: "100m", "1.5", "512Mi", "2G", "1e3"; see "Quantity" in its API reference.

#include <cstdint>
#include <optional>
#include <string_view>

namespace renzan::cluster::kubernetes {

// In thousandths, rounded up as the API server rounds; the largest number if it is larger. Nothing
// if it is negative or not a quantity.
std::optional<int64_t> ParseMilli(std::string_view text);

// Whole units, rounded up.
std::optional<int64_t> ParseUnits(std::string_view text);

}  // namespace renzan::cluster::kubernetes
