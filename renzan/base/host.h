#pragma once

// This machine's name.

#include <string>

namespace renzan {

std::string HostName();

}  // namespace renzan
