#pragma once

// The key-value store over HTTP through which Gloo's workers learn each other's addresses: served
// by worker 0 while they meet, and closed afterwards. Thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace renzan {

class GlooStoreServer {
 public:
  // Listens on `port` of the address that the workers are told, `host`. Only where that is not an
  // address of this machine, on every network, with a warning. A port in use is an Error
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

  // Announces this worker. False if the server is not there (yet). Throws Error (kUsage) if another
  // worker has the same rank or this one believes in another world size.
  bool Join(int rank, int world_size);

  // The ranks that have not joined yet, "1, 3"; empty once all are there.
  std::string Missing();

  // These throw Error (kUnavailable) if the server is gone, as Missing() does.
  void Set(const std::string& key, const std::vector<char>& value);
  std::optional<std::vector<char>> Get(const std::string& key);

 private:
  [[noreturn]] void FailGone() const;

  std::string host_;
  int port_;
};

}  // namespace renzan
