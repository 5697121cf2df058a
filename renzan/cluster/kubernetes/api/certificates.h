#pragma once

// Checks PEM texts before they are used, so that a mistake is reported with its origin rather than
// as a failed handshake. `where` starts the message: "config: users.dev.user.client-key".

#include <optional>
#include <string>

namespace renzan::cluster::kubernetes {

// Throws Error kConfig if there is no certificate in `pem`.
void CheckAuthorities(const std::string& pem, const std::string& where);

// Throws Error kConfig if these are not a certificate and a key without a passphrase, if they do
// not belong together, or if the certificate has expired at `unix_seconds` or is not valid yet.
void CheckClientCertificate(const std::string& certificate_pem,
                            const std::string& certificate_where, const std::string& key_pem,
                            const std::string& key_where, double unix_seconds);

// As above, for a server. A server can use its certificate at any time, so this returns why clients
// will not trust it at `unix_seconds`; "": they may.
std::string CheckServerCertificate(const std::string& certificate_pem,
                                   const std::string& certificate_where, const std::string& key_pem,
                                   const std::string& key_where, double unix_seconds);

// The first and the last second of a certificate.
struct Validity {
  double first = 0, last = 0;
};
// None: `pem` contains no certificate.
std::optional<Validity> ValidityOf(const std::string& pem);

// In good time before the certificate expires, a sentence that says so and counts the days; ""
// until then, and afterwards.
std::string WhyItEndsSoon(const std::string& pem, const std::string& where, double unix_seconds);

// Those of the authorities, one after the other in PEM format and each once, that are valid at
// `unix_seconds`.
// `most`: no more of them, but all that have issued `certificate`.
std::string AuthoritiesInUse(const std::string& authorities_pem, const std::string& certificate_pem,
                             double unix_seconds, size_t most);
// Whether one of the authorities has issued the certificate.
bool IsIssuedBy(const std::string& certificate_pem, const std::string& authorities_pem);

}  // namespace renzan::cluster::kubernetes
