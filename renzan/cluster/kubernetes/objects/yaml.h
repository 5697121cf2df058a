#pragma once

// Manifests as users write them.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace renzan::cluster::kubernetes {

// The one document in the text. Plain scalars that YAML 1.2 reads as null, booleans or numbers
// become these, everything else text. Throws Error kConfig (`source`, line, column).
nlohmann::json JsonFromYaml(const std::string& text, const std::string& source);

}  // namespace renzan::cluster::kubernetes
