#pragma once

#include <string>

#include "renzan/data/dataset/manifest.h"

namespace renzan {

// Dataset::fingerprint().
std::string Fingerprint(const DatasetManifest& manifest);

}  // namespace renzan
