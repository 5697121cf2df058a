#pragma once

// The sub-verbs of `renzan checkpoint` that look at many.

#include <string>

namespace CLI {
class App;
}

namespace renzan {

void AddCheckpointListVerb(CLI::App& checkpoint);
void AddCheckpointVerifyVerb(CLI::App& checkpoint, int& exit_status);

// What every sub-verb says of a checkpoint with this quantization: "int8: not bit-exact". Empty for
// one that is exact.
std::string ExactnessNote(const std::string& quantization);

}  // namespace renzan
