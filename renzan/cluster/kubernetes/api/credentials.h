#pragma once

// What proves to the server who asks, where that changes with time.

#include <memory>
#include <stop_token>
#include <string>

#include "renzan/base/clock.h"

namespace renzan::cluster::kubernetes {

// Any of these.
struct Credential {
  std::string token = {};
  std::string client_certificate_pem = {}, client_key_pem = {};

  bool operator==(const Credential&) const = default;
};

// Thread-safe: one object serves all connections of the process.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // The credential for a request. Throws an ApiError without a status: with reason "NoCredentials"
  // and what to do about it, or "Stopped" soon after `stop` is requested.
  virtual std::shared_ptr<const Credential> Get(const std::stop_token& stop) = 0;
  // After the server refused (401) what Get() returned: whether Get() now returns something else,
  // so that another attempt is worth it. Throws as Get() does.
  virtual bool Renew(const std::shared_ptr<const Credential>& refused,
                     const std::stop_token& stop) = 0;
};

// A token in a file that is replaced from time to time, as a pod's is: read again every minute, and
// when the server refuses it. While the file cannot be read, its last token stays in use, or
// `instead` if there was none yet. `from` is Access::from. `clock` must outlive the object.
std::shared_ptr<Credentials> MakeTokenFile(std::string path, std::string instead, std::string from,
                                           const Clock& clock = SystemClock());

// Whether this can be a token: anything else could add header lines to a request.
bool IsToken(const std::string& text);

}  // namespace renzan::cluster::kubernetes
