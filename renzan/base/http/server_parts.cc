#include "renzan/base/http/server_parts.h"

#include <microhttpd.h>

namespace renzan {
namespace {

// As GnuTLS writes it.
constexpr const char* kTlsVersions = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

}  // namespace

int DescriptorOf(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

bool SendText(MHD_Connection* connection, unsigned status, std::string_view text,
              const char* content_type, bool last) {
  MHD_Response* response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return false;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
  if (last) MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return queued == MHD_YES;
}

TlsOptions::TlsOptions(const TlsCredentials* credentials)
    : flags_(credentials != nullptr ? MHD_USE_TLS : 0) {
  constexpr MHD_OptionItem kEnd{MHD_OPTION_END, 0, nullptr};
  if (credentials == nullptr) {
    items_.reset(new MHD_OptionItem[1]{kEnd});
    return;
  }
  items_.reset(new MHD_OptionItem[4]{
      {MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(credentials->certificate.c_str())},
      {MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(credentials->key.c_str())},
      {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsVersions)},
      kEnd});
}

TlsOptions::~TlsOptions() = default;

}  // namespace renzan
