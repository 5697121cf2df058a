#pragma once

#include <string>

namespace renzan {

// A field of a CSV file, in quotes where it needs them (RFC 4180).
std::string CsvField(const std::string& text);

}  // namespace renzan
