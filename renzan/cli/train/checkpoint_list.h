#pragma once

// The subcommands of `renzan checkpoint` that work on several checkpoints.

#include <string>

namespace CLI {
class App;
}

namespace renzan {

void AddCheckpointListVerb(CLI::App& checkpoint);
void AddCheckpointVerifyVerb(CLI::App& checkpoint, int& exit_status);

// The note about a checkpoint with this quantization: "int8: not bit-exact". Empty for an exact
// one.
std::string ExactnessNote(const std::string& quantization);

}  // namespace renzan
