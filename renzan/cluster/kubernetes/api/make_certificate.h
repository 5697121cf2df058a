#pragma once

// Makes a certificate for a server of ours, where nobody else does.

#include <string>

namespace renzan::cluster::kubernetes {

// In PEM format.
struct MadeCertificate {
  std::string authority, certificate, key;
};

// `name` is in the subjects; `alternative` is what clients know the server by:
// "DNS:a.b.svc,IP:127.0.0.1". The authority is made for this certificate, and its key is forgotten.
// Valid from an hour before `unix_seconds`, for clocks that differ, to `life_seconds` after.
MadeCertificate MakeServerCertificate(const std::string& name, const std::string& alternative,
                                      double unix_seconds, double life_seconds);

}  // namespace renzan::cluster::kubernetes
