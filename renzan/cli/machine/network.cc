#include "renzan/cli/machine/network.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <vector>

namespace renzan {
namespace {

struct Interface {
  bool loopback = false;
  std::vector<std::string> addresses;
};

// The interfaces that are up, with their numeric addresses.
std::map<std::string, Interface> Interfaces() {
  std::map<std::string, Interface> interfaces;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char address[NI_MAXHOST];
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(entry->ifa_addr, size, address, sizeof address, nullptr, 0, NI_NUMERICHOST) !=
        0)
      continue;
    Interface& interface = interfaces[entry->ifa_name];
    interface.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    // Link-local addresses ("fe80::1%eth0") are meaningless on other hosts.
    if (std::string_view(address).find('%') == std::string_view::npos)
      interface.addresses.push_back(address);
  }
  ::freeifaddrs(list);
  return interfaces;
}

}  // namespace

Finding FindMpi(const std::string& library, const std::string& path) {
  Finding finding{.name = "MPI", .here = library};
  std::istringstream directories(path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string program = directory + "/mpirun";
    if (directory.empty() || ::access(program.c_str(), X_OK) != 0) continue;
    finding.here += ", " + program;
    return finding;
  }
  finding.state = Finding::State::kMissing;
  finding.here += ", no mpirun in $PATH";
  finding.advice = "apt install openmpi-bin for --backend mpi; gloo works without it";
  return finding;
}

Finding FindGlooInterface(const std::string& chosen) {
  Finding finding{.name = "Gloo interface"};
  std::string loopback, others;
  for (const auto& [name, interface] : Interfaces()) {
    const std::string text = fmt::format("{} {}", name, fmt::join(interface.addresses, " "));
    if (name == chosen) {
      finding.here = text + " (GLOO_SOCKET_IFNAME)";
      return finding;
    }
    std::string& list = interface.loopback ? loopback : others;
    if (!interface.addresses.empty()) list += (list.empty() ? "" : ", ") + text;
  }
  finding.here = others.empty() ? loopback : others;
  if (!chosen.empty()) {
    finding.state = Finding::State::kMissing;
    finding.advice =
        fmt::format("GLOO_SOCKET_IFNAME is {}, which is not up: choose another", chosen);
  } else if (others.empty()) {
    finding.state = loopback.empty() ? Finding::State::kMissing : Finding::State::kLimited;
    finding.advice = "no network interface: workers can only run on this machine";
  } else {
    finding.advice =
        "the one that routes to MASTER_ADDR is used; set GLOO_SOCKET_IFNAME for another";
  }
  return finding;
}

}  // namespace renzan
