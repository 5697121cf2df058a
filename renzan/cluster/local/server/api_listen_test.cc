// Where the API listens: a socket that only its owner opens, or a TCP port, with a key.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/host.h"
#include "renzan/base/process/tcp_listener.h"
#include "renzan/cluster/local/server/api_socket.h"
#include "renzan/cluster/local/server/api_tcp.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

TEST(ApiTcp, RefusesInvalidAddresses) {
  for (const char* address :
       {"", "7070", ":7070", "127.0.0.1:", "127.0.0.1:http2x", "a b:1", "127.0.0.1:70000",
        "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:4294967296", "127.0.0.1:http"}) {
    try {
      ::close(ListenOnTcp(address));
      ADD_FAILURE() << address;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << address;
      EXPECT_THAT(error.what(), HasSubstr("HOST:PORT"));
    }
  }
}

TEST(ApiTcp, APortIsForOneDaemon) {
  const int fd = ListenOnTcp("127.0.0.1:0");
  const std::string address = UrlOf(fd).substr(7);
  try {
    ::close(ListenOnTcp(address));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
    EXPECT_THAT(error.what(), HasSubstr(address));
  }
  ::close(fd);
}

TEST(ApiTcp, AKeyIsMadeOnceAndKeptSecret) {
  const TemporaryDirectory directory;
  const std::string private_dir = MakePrivateDirectory(directory.path());
  struct stat about;
  ASSERT_EQ(::stat(private_dir.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0700u);
  const std::string path = private_dir + "/key.pem";
  const TcpIdentity made = LoadTcpIdentity(path, 1.8e9);
  // Years later, its clients still know it.
  EXPECT_EQ(LoadTcpIdentity(path, 2.8e9).pin, made.pin);
  EXPECT_NE(LoadTcpIdentity(directory / "other", 1.8e9).pin, made.pin);
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  const auto code = [&] {
    try {
      LoadTcpIdentity(path, 1.8e9);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("key.pem"));
      return error.code();
    }
    return ErrorCode::kSoftware;
  };
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(code(), ErrorCode::kNoPermission);
  WriteFileAtomically(path, made.tls.certificate);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(code(), ErrorCode::kData);
}

TEST(ApiTcp, ATokenIsABearers) {
  EXPECT_EQ(BearerOf("Bearer 0123"), "0123");
  for (const char* header : {"", "0123", "Bearer", "Bearer ", "bearer 0123", "Basic 0123"})
    EXPECT_EQ(BearerOf(header), "") << header;
}

TEST(ApiTcp, ClientsAreToldAnAddressThatTheyCanReach) {
  const auto url = [](const char* address) {
    const int fd = ListenOnTcp(address);
    const std::string told = UrlForClients(fd);
    ::close(fd);
    return told;
  };
  EXPECT_THAT(url("127.0.0.1:0"), ::testing::StartsWith("https://127.0.0.1:"));
  EXPECT_THAT(url("0.0.0.0:0"), ::testing::StartsWith("https://" + HostName() + ":"));
}

TEST(ApiSocket, RefusesPathsThatItCannotListenOn) {
  TemporaryDirectory directory;
  try {
    ListenOn(directory / std::string(200, 'x'), false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_THAT(error.what(), HasSubstr("--socket"));
  }
  const std::string path = directory / "socket";
  const int first = ListenOn(path, false);
  struct stat about;
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_THROW(ListenOn(path, false), Error);  // another daemon listens there
  ::close(first);
  ::close(ListenOn(path, false));  // the socket of a dead daemon
  WriteFileAtomically(directory / "file", "");
  EXPECT_THROW(ListenOn(directory / "file", false), Error);
}

}  // namespace
}  // namespace renzan::cluster::local
