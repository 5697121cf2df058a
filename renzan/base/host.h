#pragma once

// This machine's name, and what identifies it.

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace renzan {

std::string HostName();

// The same for all containers of a machine, whatever their host names. Changes on reboot.
std::string MachineId();

// The NVIDIA GPUs in /dev: "nvidia0", not "nvidiactl". `root` is prepended to paths, for tests.
std::vector<std::string> GpuDevices(const std::string& root = "");
// The numbers of these devices, in the order of their names' numbers. 0: not a device.
std::vector<dev_t> GpuNumbers(const std::string& root = "");

// The GPUs that this process can see, as a text: two processes of a machine that see the same ones
// have the same. Containers of a machine share MachineId(), but each may have GPUs of its own.
std::string VisibleGpus(const std::function<const char*(const char*)>& environment,
                        const std::string& root = "");

}  // namespace renzan
