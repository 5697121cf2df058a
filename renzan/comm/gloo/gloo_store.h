#pragma once

// The HTTP key-value store through which Gloo's workers exchange their addresses. Worker 0 serves
// it during the rendezvous only. Thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace renzan {

class GlooStoreServer {
 public:
  // Listens on `port` of `host`, the address that the workers use. If that is not an address of
  // this machine, listens on all networks, with a warning. A port in use is an Error
  // (kUnavailable).
  GlooStoreServer(const std::string& host, int port, int world_size);
  ~GlooStoreServer();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class GlooStoreClient {
 public:
  GlooStoreClient(std::string host, int port);

  // Announces this worker. False if the server is not running (yet). Throws Error (kUsage) if
  // another worker has the same rank or this one has a different world size.
  bool Join(int rank, int world_size);

  // The ranks that have not joined yet, "1, 3"; empty once all have.
  std::string Missing();

  // Like Missing(), these throw Error (kUnavailable) if the server no longer answers.
  void Set(const std::string& key, const std::vector<char>& value);
  std::optional<std::vector<char>> Get(const std::string& key);

 private:
  [[noreturn]] void FailGone() const;

  std::string host_;
  int port_;
};

}  // namespace renzan
