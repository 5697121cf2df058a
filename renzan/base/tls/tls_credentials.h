#pragma once

// What a server of ours proves its identity with.

#include <string>

namespace renzan {

// In PEM format; the issuers' certificates may follow the certificate.
struct TlsCredentials {
  std::string certificate, key;
};

}  // namespace renzan
