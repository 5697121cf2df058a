// One worker of launch_test: launch_test_worker <directory> <mode> [rank [status]]. It leaves a
// file "pid.<rank>" in the directory, then
//
//   ok               ends with 0
//   wait             waits for SIGTERM and then ends with 75
//   plain            waits, and signals do what they do by default
//   exit RANK N      worker RANK ends with status N, the others wait
//   answer RANK N    worker RANK ends with status N, the others with 0
//   die RANK         worker RANK kills itself, the others wait
//   cascade RANK     as die, and the others end with 69 as soon as it is gone
//   stubborn RANK    as die, and the others ignore SIGTERM

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

std::string Variable(const char* name, const char* other_name) {
  if (const char* value = std::getenv(name)) return value;
  const char* value = std::getenv(other_name);
  return value != nullptr ? value : "?";
}

void StopOnRequest(int) { _exit(75); }

std::string PidFile(const std::string& directory, const std::string& rank) {
  return directory + "/pid." + rank;
}

void WaitForFile(const std::string& path) {
  struct stat info;
  while (stat(path.c_str(), &info) != 0) usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string directory = argv[1], mode = argv[2], victim = argc > 3 ? argv[3] : "";
  const std::string rank = Variable("RANK", "OMPI_COMM_WORLD_RANK");
  const std::string world = Variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE");
  alarm(60);  // nothing that hangs may outlive its test
  std::signal(SIGINT, SIG_DFL);
  if (mode != "plain") std::signal(SIGTERM, mode == "stubborn" ? SIG_IGN : StopOnRequest);

  std::ofstream(PidFile(directory, rank) + ".new")
      << getpid() << ' ' << world << ' ' << Variable("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
      << ' ' << Variable("MASTER_ADDR", "") << '\n';
  std::rename((PidFile(directory, rank) + ".new").c_str(), PidFile(directory, rank).c_str());
  for (int i = 0; i < std::atoi(world.c_str()); ++i)
    WaitForFile(PidFile(directory, std::to_string(i)));

  if (mode == "ok" || (mode == "answer" && rank != victim)) return 0;
  if (mode != "wait" && rank == victim) {
    if (mode == "exit" || mode == "answer") return std::atoi(argv[4]);
    std::ofstream(directory + "/died") << "";
    raise(SIGKILL);
  }
  if (mode == "cascade") {
    WaitForFile(directory + "/died");
    usleep(20000);
    return 69;
  }
  for (;;) pause();
}
