// renzan-supervisor DIR: supervises one attempt of a job. The daemon starts one for each attempt. A
// separate program, because loading the libraries of `renzan` takes longer than starting a job.

#include <cstdio>
#include <exception>

#include "renzan/base/error.h"
#include "renzan/cluster/local/supervisor/attempt.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("renzan-supervisor is started by the daemon: to run a job, use `renzan submit`\n",
               stderr);
    return static_cast<int>(renzan::ErrorCode::kUsage);
  }
  try {
    return renzan::cluster::local::SuperviseAttempt(argv[1]);
  } catch (const renzan::Error& error) {
    std::fprintf(stderr, "renzan-supervisor: %s\n", error.what());
    return error.exit_status();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "renzan-supervisor: unexpected: %s\n", error.what());
    return static_cast<int>(renzan::ErrorCode::kSoftware);
  }
}
