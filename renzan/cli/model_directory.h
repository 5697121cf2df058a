#pragma once

// Verbs that take a saved model also take the run directory that holds one.

#include <string>

namespace renzan {

// `path` itself, or `path`/model for a run directory. Throws kData for a run that did not finish.
std::string ModelDirectory(const std::string& path);

}  // namespace renzan
