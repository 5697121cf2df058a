#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

// A field of a CSV file, in quotes where it needs them (RFC 4180).
std::string CsvField(const std::string& text);

// The fields of one line of CSV, where CsvField() wrote each. Nothing if its quotes are wrong.
std::optional<std::vector<std::string>> CsvFieldsOf(std::string_view line);

}  // namespace renzan
