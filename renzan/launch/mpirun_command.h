#pragma once

#include <string>
#include <vector>

namespace renzan {

// The command line of an mpirun whose workers all run on this machine, each with its RANK and
// LOCAL_RANK. `arguments` are those of `program`. `shared_cpus`: there are more workers than CPUs.
std::vector<std::string> MpirunCommand(int workers, bool shared_cpus, const std::string& program,
                                       const std::vector<std::string>& arguments);

}  // namespace renzan
