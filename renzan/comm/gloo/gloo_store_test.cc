// Where worker 0 listens. Nothing is sent over a network.

#include "renzan/comm/gloo/gloo_store.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "renzan/base/error.h"
#include "renzan/base/process/free_port.h"
#include "renzan/comm/gloo/local_address.h"

namespace renzan {
namespace {

std::string Digits(const in_addr& address) {
  char text[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &address, text, sizeof(text));
}

// A non-loopback address of this machine.
std::optional<std::string> NetworkAddress() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return std::nullopt;
  std::optional<std::string> found;
  for (const ifaddrs* each = list; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_LOOPBACK) == 0 && (each->ifa_flags & IFF_UP) != 0)
      found = Digits(reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr);
  }
  freeifaddrs(list);
  return found;
}

// The local addresses on which some process listens on the port.
std::set<std::string> Listening(int port) {
  std::set<std::string> addresses;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    // "0: 0100007F:1F90 00000000:0000 0A ..."
    unsigned address = 0, local_port = 0, state = 0;
    if (std::sscanf(line.c_str(), "%*d: %8X:%4X %*8X:%*4X %2X", &address, &local_port, &state) ==
            3 &&
        state == 0x0A && local_port == static_cast<unsigned>(port))
      addresses.insert(Digits({address}));
  }
  return addresses;
}

TEST(ListenAddress, IsTheOneThatTheWorkersUse) {
  EXPECT_EQ(ListenAddress("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(ListenAddress("127.3.2.1"), "127.3.2.1");
  const std::optional<std::string> localhost = ListenAddress("localhost");
  EXPECT_TRUE(localhost == "127.0.0.1" || localhost == "::1") << localhost.value_or("none");
  if (const std::optional<std::string> own = NetworkAddress()) {
    EXPECT_EQ(ListenAddress(*own), own);
  }
  EXPECT_EQ(ListenAddress("198.51.100.7"), std::nullopt) << "reserved for documentation";
  EXPECT_THROW(ListenAddress("no such host"), Error);
}

TEST(GlooStore, ListensOnNoOtherAddress) {
  const std::optional<std::string> own = NetworkAddress();
  for (const std::string& host : {std::string("127.0.0.1"), own.value_or("127.0.0.2")}) {
    const int port = FreePort();
    const GlooStoreServer server(host, port, 2);
    EXPECT_EQ(Listening(port), std::set<std::string>{host});
  }
}

}  // namespace
}  // namespace renzan
