#pragma once

#include <optional>
#include <string>

namespace renzan::cluster::kubernetes {

std::string EncodeBase64(const std::string& bytes);
// Ignores spaces and line ends. None: it is not base64.
std::optional<std::string> DecodeBase64(std::string text);

}  // namespace renzan::cluster::kubernetes
