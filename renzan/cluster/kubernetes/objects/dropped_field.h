#pragma once

// A server silently drops fields from objects if its definition of the kind lacks them.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace renzan::cluster::kubernetes {

// The path of the first field of `written` that is missing in `there`, such as "status.facts";
// empty: none. `path` is that of the two objects. Looks into nested objects, but not into lists.
std::string DroppedField(const nlohmann::json& written, const nlohmann::json& there,
                         const std::string& path);

}  // namespace renzan::cluster::kubernetes
