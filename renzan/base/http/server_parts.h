#pragma once

// What our HTTP servers have in common around libmicrohttpd.

#include <memory>
#include <string_view>

#include "renzan/base/tls/tls_credentials.h"

struct MHD_Connection;
struct MHD_OptionItem;

namespace renzan {

// The descriptor of a connection's socket.
int DescriptorOf(MHD_Connection* connection);

// Answers the request. `last`: and closes the connection after that. False if that fails: then the
// connection is to be closed.
bool SendText(MHD_Connection* connection, unsigned status, std::string_view text,
              const char* content_type, bool last = false);

// For MHD_OPTION_ARRAY: how a server started with MHD_USE_TLS proves its identity, and which
// versions it speaks; without credentials (null), nothing.
class TlsOptions {
 public:
  // The credentials must outlive the start of the server.
  explicit TlsOptions(const TlsCredentials* credentials);
  ~TlsOptions();

  MHD_OptionItem* get() const { return items_.get(); }
  // MHD_USE_TLS, or 0.
  unsigned flags() const { return flags_; }

 private:
  std::unique_ptr<MHD_OptionItem[]> items_;
  unsigned flags_;
};

}  // namespace renzan
