#pragma once

#include <string>
#include <vector>

namespace renzan {

// The command line of an mpirun whose workers all run on this machine, each with its RANK and
// LOCAL_RANK. `arguments` are those of `program`. More workers than CPUs: `shared_cpus`.
std::vector<std::string> MpirunCommand(int workers, bool shared_cpus, const std::string& program,
                                       const std::vector<std::string>& arguments);

}  // namespace renzan
