#pragma once

// Makes certificates for servers of ours, where nobody else does.

#include <string>

namespace renzan {

// In PEM format.
struct MadeCertificate {
  std::string authority, certificate, key;
};

// `name` is in the subjects; `alternative` is what clients know the server by:
// "DNS:a.b.svc,IP:127.0.0.1". The authority is made for this certificate, and its key is forgotten.
// Valid from an hour before `unix_seconds`, for clocks that differ, to `life_seconds` after.
MadeCertificate MakeServerCertificate(const std::string& name, const std::string& alternative,
                                      double unix_seconds, double life_seconds);

// A new private key in PEM format.
std::string MakePrivateKey();

// A certificate that the key signs for itself, for clients that know the key by its pin. These
// throw Error kData if `key` is not a private key in PEM format.
std::string MakeSelfSignedCertificate(const std::string& key, const std::string& name,
                                      double unix_seconds, double life_seconds);

// The SHA-256 of the key's public half, as libcurl takes it: "sha256//" and Base64. Any certificate
// of the key has it.
std::string PublicKeyPin(const std::string& key);

}  // namespace renzan
