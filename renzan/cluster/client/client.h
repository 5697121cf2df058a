#pragma once

// A client of the daemon: HTTP over its Unix socket, or HTTPS over TCP with a user's token. Each
// object is for one thread at a time.
//
// Throws the daemon's Error (its code and message), or
//   kUnavailable   no daemon listens there, or it disconnected or did not respond
//   kNoPermission  the socket belongs to another user; there is no token for a TCP address, or it
//                  is for another daemon
//   kConfig        the socket's path is too long
//   kUsage         invalid address after https://, or http://

#include <functional>
#include <string>
#include <string_view>

#include "renzan/base/http/http.h"

namespace renzan::cluster::client {

// A daemon's address.
struct Endpoint {
  Endpoint(std::string path) : socket(std::move(path)) {}  // NOLINT: implicit from a path
  Endpoint(std::string address, std::string token_path)
      : socket(std::move(address)), token_file(std::move(token_path)) {}

  std::string socket;           // its path, or https://HOST:PORT
  std::string token_file = {};  // for TCP: a Credential; read for every request
};

class Client {
 public:
  // Connects with the first request. `timeout_seconds` limits Get() and Post(), not Stream().
  explicit Client(Endpoint endpoint, double timeout_seconds = 60);

  const std::string& socket() const { return endpoint_.socket; }

  // `target` is a path with a query: "/v1/jobs?all=1". Return the body.
  std::string Get(const std::string& target);
  std::string Post(const std::string& target, const std::string& json_body);

  // Passes the body to `take` piece by piece. An exception of `take` ends the transfer and is
  // rethrown.
  void Stream(const std::string& target, const std::function<void(std::string_view)>& take);

 private:
  HttpAnswer Send(HttpRequest request, const std::string& target);
  // Not reached, although `owner` is its daemon.
  [[noreturn]] void FailInSpiteOf(const std::string& owner) const;
  [[noreturn]] void FailTransfer(const HttpFailure& failure, bool writes) const;

  Endpoint endpoint_;
  const double timeout_seconds_;
  Http http_;
};

// Percent-encodes a part of a path or query.
std::string EscapeUrl(std::string_view text);

}  // namespace renzan::cluster::client
