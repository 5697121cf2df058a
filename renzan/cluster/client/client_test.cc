#include "renzan/cluster/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/base/file/file_lock.h"
#include "renzan/cluster/client/paths.h"

namespace renzan::cluster::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int Listen(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  CHECK(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(::listen(fd, 8) == 0);
  return fd;
}

// A server that sends the same response to every request and records the last request.
class Server {
 public:
  Server(const std::string& socket, unsigned status, std::string answer)
      : status_(status), answer_(std::move(answer)) {
    daemon_ = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, &Handle, this,
                               MHD_OPTION_LISTEN_SOCKET, Listen(socket), MHD_OPTION_END);
    CHECK(daemon_ != nullptr);
  }
  ~Server() { MHD_stop_daemon(daemon_); }

  std::string asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  unsigned connections() const {
    return MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
  }

 private:
  static MHD_Result Handle(void* self, MHD_Connection* connection, const char* url,
                           const char* method, const char*, const char* data, size_t* size,
                           void** state) {
    Server& server = *static_cast<Server*>(self);
    const std::lock_guard lock(server.mutex_);
    if (*state == nullptr) {
      *state = self;
      const char* query = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "q");
      server.asked_ = fmt::format("{} {} {}\n", method, url, query == nullptr ? "-" : query);
      return MHD_YES;
    }
    if (*size > 0) {
      server.asked_.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    MHD_Response* response = MHD_create_response_from_buffer(
        server.answer_.size(), server.answer_.data(), MHD_RESPMEM_PERSISTENT);
    const MHD_Result result = MHD_queue_response(connection, server.status_, response);
    MHD_destroy_response(response);
    return result;
  }

  std::mutex mutex_;
  unsigned status_;
  std::string answer_, asked_;
  MHD_Daemon* daemon_;
};

class ClientTest : public ::testing::Test {
 protected:
  // The error of a request.
  Error ErrorOf(const std::function<void(Client&)>& ask, double timeout_seconds = 20) {
    try {
      Client client(socket_, timeout_seconds);
      ask(client);
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::kSoftware, "no error"};
  }
  Error GetError() {
    return ErrorOf([](Client& client) { client.Get("/v1/status"); });
  }

  TemporaryDirectory dir_;
  std::string socket_ = dir_ / "socket";
};

TEST_F(ClientTest, SendsRequestsAndReturnsResponses) {
  Server server(socket_, 200, R"({"jobs": []})");
  Client client(socket_);
  EXPECT_EQ(client.Get("/v1/jobs?q=" + EscapeUrl("a b&c=d/\xc3\xbc")), R"({"jobs": []})");
  EXPECT_EQ(server.asked(), "GET /v1/jobs a b&c=d/\xc3\xbc\n");
  EXPECT_EQ(client.Post("/v1/jobs", R"({"spec": "x"})"), R"({"jobs": []})");
  EXPECT_EQ(server.asked(), "POST /v1/jobs -\n{\"spec\": \"x\"}");
  EXPECT_EQ(client.Post("/v1/shutdown", ""), R"({"jobs": []})");
  EXPECT_EQ(server.asked(), "POST /v1/shutdown -\n");
}

// Thousands of clients may wait for their jobs, each with a request now and then.
TEST_F(ClientTest, HoldsNoConnectionBetweenRequests) {
  Server server(socket_, 200, "{}");
  Client first(socket_), second(socket_);
  for (int each = 0; each < 3; ++each)
    for (Client* client : {&first, &second}) client->Get("/v1/jobs/1");
  for (int tries = 0; server.connections() > 0 && tries < 500; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server.connections(), 0u);
}

TEST_F(ClientTest, SendsLargeBodies) {
  Server server(socket_, 201, "{}");
  std::string body(5'000'000, 'x');
  body[4'000'000] = '\0';
  Client(socket_).Post("/v1/jobs", body);
  EXPECT_EQ(server.asked(), "POST /v1/jobs -\n" + body);
}

TEST_F(ClientTest, ThrowsTheDaemonsError) {
  Server server(socket_, 404, R"({"error": {"code": 66, "message": "there is no job 7"}})");
  const Error error = GetError();
  EXPECT_EQ(error.code(), ErrorCode::kNoInput);
  EXPECT_STREQ(error.what(), "there is no job 7");
  std::string streamed;
  const Error of_stream = ErrorOf([&](Client& client) {
    client.Stream("/v1/jobs/7/logs", [&](std::string_view piece) { streamed += piece; });
  });
  EXPECT_EQ(of_stream.code(), ErrorCode::kNoInput);
  EXPECT_EQ(streamed, "");
}

TEST_F(ClientTest, ReportsResponsesOfOtherServers) {
  for (const char* answer : {"<html>", "{}", R"({"error": 5})", R"({"error": {"code": 66}})",
                             R"({"error": {"code": 3, "message": "x"}})",
                             R"({"error": {"code": "66", "message": "x"}})"}) {
    ::unlink(socket_.c_str());
    Server server(socket_, 500, answer);
    const Error error = GetError();
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << answer;
    EXPECT_THAT(error.what(), HasSubstr("HTTP status 500")) << answer;
  }
}

TEST_F(ClientTest, StreamsAndRethrowsExceptions) {
  Server server(socket_, 200, std::string(300'000, 'y'));
  Client client(socket_);
  size_t bytes = 0;
  client.Stream("/v1/jobs/7/logs", [&](std::string_view piece) { bytes += piece.size(); });
  EXPECT_EQ(bytes, 300'000u);
  EXPECT_THROW(
      client.Stream("/v1/jobs/7/logs", [](std::string_view) { throw std::runtime_error("full"); }),
      std::runtime_error);
}

TEST_F(ClientTest, ReportsThatNoDaemonListens) {
  Error error = GetError();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.what(),
            fmt::format("no daemon at {}: start one with `renzan cluster up`", socket_));
  ::close(Listen(socket_));  // the socket of a dead daemon
  error = GetError();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("renzan cluster up"));
}

// `renzan cluster up` would say that one is running, and `cluster down` that none is.
TEST_F(ClientTest, ReportsADaemonWhoseSocketWasRemoved) {
  const auto lock = FileLock::TryLock(dir_ / "lock", "pid 4711");
  EXPECT_THAT(GetError().what(), AllOf(HasSubstr("one is running (pid 4711)"),
                                       HasSubstr("end it with `kill` and this number")));
  ::close(Listen(socket_));  // it is there, but nobody accepts
  EXPECT_THAT(GetError().what(), HasSubstr("(pid 4711) takes no connection now"));
}

TEST_F(ClientTest, ReportsDisconnectsAndTimeouts) {
  const int fd = Listen(socket_);
  Error error = ErrorOf([](Client& client) { client.Get("/v1/status"); }, 0.2);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), HasSubstr("did not respond within 0.2 s"));

  const pid_t child = ::fork();
  if (child == 0) {  // disconnects both waiting clients
    for (int i = 0; i < 2; ++i) {
      const int client = ::accept(fd, nullptr, nullptr);
      char byte;  // a client whose request has not begun would see that it cannot connect
      (void)!::read(client, &byte, 1);
      ::close(client);
    }
    ::_exit(0);
  }
  error = ErrorOf([](Client& client) { client.Post("/v1/jobs", "{}"); });
  ::close(fd);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("disconnected"), HasSubstr("whether it was done")));
}

TEST_F(ClientTest, ReportsMissingPermission) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const int fd = Listen(socket_);
  ::chmod(socket_.c_str(), 0600);
  ::chmod(dir_.path().c_str(), 0755);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    const Error error = GetError();
    const bool says_so = std::string(error.what()).find("permission denied") != std::string::npos;
    ::_exit(says_so ? error.exit_status() : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(fd);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::kNoPermission));
}

TEST_F(ClientTest, RefusesLongPaths) {
  socket_ = dir_ / std::string(200, 's');
  const Error error = GetError();
  EXPECT_EQ(error.code(), ErrorCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("at most 107"), HasSubstr("--socket")));
}

TEST(Paths, FollowTheEnvironment) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/ann"}};
  const auto environment = [&](const char* name) {
    return variables.contains(name) ? variables[name].c_str() : nullptr;
  };
  EXPECT_EQ(StateDirectory(environment), "/home/ann/.local/state/renzan");
  EXPECT_EQ(SocketPath(environment, "/s"), "/s/socket");
  variables["XDG_STATE_HOME"] = "/x";
  EXPECT_EQ(StateDirectory(environment), "/x/renzan");
  variables["RENZAN_STATE_DIR"] = "/r";
  variables["RENZAN_SOCKET"] = "/t";
  EXPECT_EQ(StateDirectory(environment), "/r");
  EXPECT_EQ(SocketPath(environment, "/s"), "/t");
  variables = {{"HOME", ""}};
  EXPECT_THROW(StateDirectory(environment), Error);
}

}  // namespace
}  // namespace renzan::cluster::client
