#pragma once

// Which names are valid in job and cluster configurations. Names end up in file names, tables, URLs
// and environment variables. Pure functions.

#include <string_view>

namespace renzan::cluster::spec {

// For a job, queue, pool, node, resource or topology level: 1 to 63 letters, digits, '_', '-' and
// '.', beginning with a letter or digit.
bool IsName(std::string_view text);
inline constexpr const char* kNameRule =
    "must be 1 to 63 letters, digits, '_', '-' or '.', beginning with a letter or digit";

// For a node that a job names, which may be one of Kubernetes: at most 253 letters, digits, '_',
// '-' and '.'.
bool IsNodeName(std::string_view text);

// For an OS user: as IsName, but may begin with '_' and contain '@', '+' and '$'.
bool IsUserName(std::string_view text);

// For a label: as IsName, but may contain '/' ("topology.example.org/rack").
bool IsLabelKey(std::string_view text);

// For an environment variable: letters, digits and '_', not beginning with a digit.
bool IsVariableName(std::string_view text);

// One line of text: at most 4096 bytes and no control characters.
bool IsOneLine(std::string_view text);

}  // namespace renzan::cluster::spec
