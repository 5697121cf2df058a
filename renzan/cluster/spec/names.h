#pragma once

// What may be a name in a job or a cluster, said once for every place that takes one. Names end up
// in file names, tables, URLs and environment variables. Pure functions.

#include <string_view>

namespace renzan::cluster::spec {

// Of a job, queue, pool, node, resource or topology level: 1 to 63 letters, digits, '_', '-' and
// '.', the first one a letter or digit.
bool IsName(std::string_view text);
inline constexpr const char* kNameRule =
    "must be 1 to 63 letters, digits, '_', '-' or '.', beginning with a letter or digit";

// As the machine names its users: as IsName, also beginning with '_' and holding '@', '+' or '$'.
bool IsUserName(std::string_view text);

// Of a label: as IsName, with '/' too ("topology.example.org/rack").
bool IsLabelKey(std::string_view text);

// Of an environment variable: letters, digits and '_', not beginning with a digit.
bool IsVariableName(std::string_view text);

// One line of text: at most 4096 bytes and no control characters.
bool IsOneLine(std::string_view text);

}  // namespace renzan::cluster::spec
