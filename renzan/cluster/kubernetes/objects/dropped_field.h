#pragma once

// What a server's definition of a kind does not know, it drops from objects without a word.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace renzan::cluster::kubernetes {

// The path of a field of `written` that is missing in `there`, such as "status.facts"; empty: none
// is. `path` is that of the objects themselves. Looks at objects in objects, not into lists.
std::string DroppedField(const nlohmann::json& written, const nlohmann::json& there,
                         const std::string& path);

}  // namespace renzan::cluster::kubernetes
