#pragma once

// What a program that has failed said last.

#include <string>

namespace renzan::cluster::local {

// The last line of the file, shortened; "" if there is none or it cannot be read.
std::string LastLineOf(const std::string& log);

}  // namespace renzan::cluster::local
