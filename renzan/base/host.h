#pragma once

// This machine's name, and what identifies it.

#include <string>

namespace renzan {

std::string HostName();

// The same for all containers of a machine, whatever their host names. Changes on reboot.
std::string MachineId();

}  // namespace renzan
