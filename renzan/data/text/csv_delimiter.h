#pragma once

// Which delimiter a line seems to have, for messages and proposals.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace renzan {

// In the order in which they are tried.
inline constexpr const char* kUsualDelimiters[] = {"\t", ",", ";", "|", "::", " "};

// The first usual delimiter with which the fields of `line` are what `fits` looks for, or "".
std::string DelimiterThatFits(
    std::string_view line,
    const std::function<bool(const std::vector<std::string_view>& fields)>& fits);

// As a schema file has it: "delimiter: tab".
std::string DelimiterInSchema(const std::string& delimiter);

}  // namespace renzan
