#pragma once

// The bearer token of an Access: a fixed one, or one in a file that is replaced from time to time,
// as a pod's is. For one thread at a time.

#include <string>

#include "renzan/base/clock.h"
#include "renzan/cluster/kubernetes/api/access.h"

namespace renzan::cluster::kubernetes {

class Token {
 public:
  // `access` and `clock` must outlive this object.
  Token(const Access& access, const Clock& clock) : access_(access), clock_(clock) {}

  // Empty if there is none. If the file cannot be read, the last token read from it stays valid;
  // without one, throws Error kNoPermission.
  const std::string& Get();
  // Reads the file again, because the server refused the token. Returns whether it has changed.
  bool Renew();

 private:
  void Read();

  const Access& access_;
  const Clock& clock_;
  std::string token_;
  double read_seconds_ = 0;
};

}  // namespace renzan::cluster::kubernetes
