#pragma once

// Questions to the daemon: HTTP over its Unix socket, or over TCP with its token. An object is for
// one thread at a time, but any number of them may be used at once.
//
// What fails is an Error: the daemon's own (its code and its message), or
//   kUnavailable   nobody listens on the socket, or whoever does went away or does not answer
//   kNoPermission  the socket is somebody else's, or there is no token for a TCP address
//   kConfig        the socket's path is too long
//   kUsage         what begins with http:// is no address

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace renzan::cluster::client {

// Where a daemon is.
struct Endpoint {
  Endpoint(std::string path) : socket(std::move(path)) {}  // NOLINT: a path is one
  Endpoint(std::string address, std::string token_path)
      : socket(std::move(address)), token_file(std::move(token_path)) {}

  std::string socket;           // its path, or http://HOST:PORT
  std::string token_file = {};  // for the latter; read with every question
};

class Client {
 public:
  // Connects with the first question only. An answer that takes longer than `timeout_seconds` does
  // not come.
  explicit Client(Endpoint endpoint, double timeout_seconds = 60);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& socket() const { return endpoint_.socket; }

  // `target` is the path with its query: "/v1/jobs?all=1". Returns the body.
  std::string Get(const std::string& target);
  std::string Post(const std::string& target, const std::string& json_body);

  // Hands over the body as it comes, for as long as it comes. An exception of `take` ends it and is
  // passed on.
  void Stream(const std::string& target, const std::function<void(std::string_view)>& take);

 private:
  struct Transfer;
  void Perform(Transfer& transfer, const std::string& target);
  [[noreturn]] void FailTransfer(const Transfer& transfer, int curl_code);

  Endpoint endpoint_;
  double timeout_seconds_;
  struct CloseCurl {
    void operator()(void* curl) const;
  };
  std::unique_ptr<void, CloseCurl> curl_;
};

// A path's or query's part with every byte that means something in a URL escaped.
std::string EscapeUrl(std::string_view text);

}  // namespace renzan::cluster::client
