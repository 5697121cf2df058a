#pragma once

// YAML as users write it: manifests, and parts of kubeconfig files.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace YAML {
class Node;
}

namespace renzan::cluster::kubernetes {

// The one document in the text. Plain scalars that YAML 1.2 reads as null, booleans or numbers
// become these, everything else text. Throws Error kConfig (`source`, line, column).
nlohmann::json JsonFromYaml(const std::string& text, const std::string& source);
// The same for a part of a document.
nlohmann::json JsonFromYaml(const YAML::Node& node, const std::string& source);

}  // namespace renzan::cluster::kubernetes
