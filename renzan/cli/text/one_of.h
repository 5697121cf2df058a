#pragma once

#include <string>
#include <vector>

namespace CLI {
class Validator;
}

namespace renzan {

// A check of an option's text: one of these words. Its message names the nearest; helps and
// completions list them (DescribeVerbs).
CLI::Validator OneOf(const std::vector<std::string>& words);

}  // namespace renzan
