#include "renzan/cli/version.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <mpi.h>
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <string_view>

#include "renzan/base/build_id.h"
#include "renzan/cli/job_system/load.h"
#include "renzan/nn/isa.h"

namespace renzan {
namespace {

std::string XxhashVersion() {
  const unsigned version = XXH_versionNumber();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string MpiLibraryVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);  // may be called before MPI_Init
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ..."
  return std::string(text).substr(0, std::string_view(text).find_first_of(",\n"));
}

std::string VersionText() {
  const std::optional<JobSystemVersions> jobs = VersionsInJobSystem();
  return fmt::format(
      "renzan {} (build {})\n"
      "instruction set {}\n"
      "libraries Highway {}, {}, glibc {},\n"
      "          {}libcurl {}, {}OpenSSL {},\n"
      "          zlib {}, zstd {}, xxHash {}",
      RENZAN_VERSION, BuildId(), SelectIsa("auto"), RENZAN_HWY_VERSION, MpiLibraryVersion(),
      ::gnu_get_libc_version(), jobs ? fmt::format("SQLite {}, ", jobs->sqlite) : "",
      ::curl_version_info(CURLVERSION_NOW)->version,
      jobs ? fmt::format("libmicrohttpd {}, ", jobs->microhttpd) : "",
      ::OpenSSL_version(OPENSSL_VERSION_STRING), ::zlibVersion(), ::ZSTD_versionString(),
      XxhashVersion());
}

}  // namespace renzan
