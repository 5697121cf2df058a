#include "renzan/cluster/kubernetes/process/path_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "renzan/base/clock.h"
#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Connection {
 public:
  explicit Connection(const PathServer& server)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const std::string& url = server.url();
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False: the server has closed it.
  bool Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Reads until the server closes the connection.
  std::string Read() {
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd_, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
    return text;
  }

 private:
  int fd_;
};

std::string Ask(const PathServer& server, const std::string& method, const std::string& path,
                const std::string& body = "") {
  Connection connection(server);
  const std::string length = body.empty() ? "" : fmt::format("Content-Length: {}\r\n", body.size());
  connection.Write(fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n{}", method,
                               path, length, body));
  return connection.Read();
}

PathHandlers Echo() {
  return {.post = {{"/echo", [](const std::string& body) { return ServerAnswer{200, body}; }}}};
}

TEST(PathServer, AnswersItsPathsOnly) {
  const PathServer server("127.0.0.1:0", {.get = {{"/good",
                                                   [] {
                                                     return ServerAnswer{200, "fine\n"};
                                                   }},
                                                  {"/bad", [] {
                                                     return ServerAnswer{503, "ill\n"};
                                                   }}}});
  const std::string good = Ask(server, "GET", "/good");
  EXPECT_THAT(good, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(good, HasSubstr("\r\n\r\nfine\n"));
  EXPECT_THAT(Ask(server, "GET", "/bad"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Ask(server, "GET", "/else"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(server, "DELETE", "/good"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Ask(server, "POST", "/good", "x"), StartsWith("HTTP/1.1 405"));
}

TEST(PathServer, TakesBodies) {
  const PathServer server("127.0.0.1:0", Echo());
  const std::string body(300'000, 'b');
  EXPECT_THAT(Ask(server, "POST", "/echo", body), HasSubstr("\r\n\r\n" + body));
  EXPECT_THAT(Ask(server, "GET", "/echo"), StartsWith("HTTP/1.1 405"));
}

TEST(PathServer, RefusesBodiesThatAreTooLarge) {
  const PathServer server("127.0.0.1:0", Echo(), "--listen", std::nullopt,
                          {.body_bytes = 1000, .bodies_bytes = 1500});
  EXPECT_THAT(Ask(server, "POST", "/echo", std::string(1000, 'b')), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(server, "POST", "/echo", std::string(1001, 'b')), StartsWith("HTTP/1.1 413"));
  {
    // Another request is being received; how far the server has got with it is unknown.
    Connection half(server);
    half.Write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" +
               std::string(900, 'h'));
    std::string answer;
    const double give_up = SystemClock().MonotonicSeconds() + 60;
    do answer = Ask(server, "POST", "/echo", std::string(1000, 'b'));
    while (answer.starts_with("HTTP/1.1 200") && SystemClock().MonotonicSeconds() < give_up);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  }
  // What was received of it is dropped with its connection.
  std::string answer;
  const double give_up = SystemClock().MonotonicSeconds() + 60;
  do answer = Ask(server, "POST", "/echo", std::string(1000, 'b'));
  while (answer.starts_with("HTTP/1.1 503") && SystemClock().MonotonicSeconds() < give_up);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

TEST(PathServer, CutsOffWhoIsSlow) {
  const PathServer server("127.0.0.1:0", Echo(), "--listen", std::nullopt,
                          {.request_seconds = 0.5});
  Connection slow(server);
  slow.Write("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  // Each byte is in time, but not all of them together. Meanwhile others are served.
  const double give_up = SystemClock().MonotonicSeconds() + 60;
  while (slow.Write("b") && SystemClock().MonotonicSeconds() < give_up) {
    EXPECT_THAT(Ask(server, "POST", "/echo", "quick"), HasSubstr("\r\n\r\nquick"));
    ::usleep(50'000);
  }
  EXPECT_LT(SystemClock().MonotonicSeconds(), give_up);
}

TEST(PathServer, SaysWhyItCannotListen) {
  const PathServer first("127.0.0.1:0", {});
  try {
    const PathServer second(first.url().substr(7), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCantCreate);
  }
  try {
    const PathServer server("nonsense", {}, "--admission");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("--admission nonsense: "));
  }
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
