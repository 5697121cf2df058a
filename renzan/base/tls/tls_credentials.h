#pragma once

// What a server of ours proves its identity with.

#include <string>

namespace renzan {

// In PEM format; the issuers' certificates may follow the certificate.
struct TlsCredentials {
  std::string certificate, key;
};

// Which versions a server speaks, as GnuTLS writes it.
inline constexpr const char* kTlsVersions = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

}  // namespace renzan
