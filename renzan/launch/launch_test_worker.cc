// One worker of launch_test: launch_test_worker <directory> <mode> [rank [number]]. It leaves a
// file "pid.<rank>" in the directory and a line "<restart> <rank> <world>" in its file "starts",
// then
//
//   ok               ends with 0
//   wait             waits for SIGTERM and then ends with 75
//   plain            waits, and signals do what they do by default
//   exit RANK N      worker RANK ends with status N, the others wait
//   answer RANK N    worker RANK ends with status N, the others with 0
//   die RANK         worker RANK kills itself, the others wait
//   cascade RANK N   as die, and the others end with status N as soon as it has died
//   explain RANK N M the others end with status M, worker RANK with N, and later than that
//   stubborn RANK    as die, and the others ignore SIGTERM
//   recover RANK     as die in the first attempt; later ones end with 0
//   falter RANK N    as exit in the first attempt; later ones end with 0
//   regrow RANK      as die in the first attempt, wait in the second; later ones end with 0
//   deaf RANK        as die in the first attempt; later ones end with 0 after three seconds, and
//                    SIGTERM does what it does by default
//   finish RANK S    after SIGTERM, worker RANK ("all": every one) needs S seconds and then ends
//                    with 75, ignoring further signals; the others end with 75 immediately
//   bereave RANK S N as finish, but the others end with status N immediately
//   parent           as plain, with a child that waits, whose pid is in "child.<rank>"
//   leave            as parent, but ends with 0

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

int status_on_request = 75;

void StopOnRequest(int) { _exit(status_on_request); }

unsigned finish_seconds = 0;

void FinishOnRequest(int) {
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGALRM, StopOnRequest);
  alarm(finish_seconds);
}

std::string PidFile(const std::string& directory, const std::string& rank) {
  return directory + "/pid." + rank;
}

// Waits until every worker of this attempt has written its line to `path`.
void WaitForAll(const std::string& path, const std::string& restart, int world) {
  for (int found = 0; found < world; usleep(1000)) {
    std::ifstream file(path);
    found = 0;
    for (std::string line; std::getline(file, line);) found += line.starts_with(restart + " ");
  }
}

void StartChild(const std::string& directory, const std::string& rank) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  std::ofstream(directory + "/child." + rank) << child << std::endl;
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
  alarm(60);  // a hanging process must not outlive its test
  std::signal(SIGINT, SIG_DFL);
  if (mode != "plain" && mode != "parent" && mode != "deaf")
    std::signal(SIGTERM, mode == "stubborn" ? SIG_IGN : StopOnRequest);

  const bool is_victim = rank == victim || victim == "all";
  const bool may_finish = mode == "finish" || mode == "bereave";
  if (mode == "bereave" && !is_victim) status_on_request = std::atoi(argv[5]);
  if (may_finish && is_victim) {
    finish_seconds = std::atoi(argv[4]);
    std::signal(SIGTERM, FinishOnRequest);
  }
  const std::string restart = Variable("RENZAN_RESTART", "");
  std::ofstream(PidFile(directory, rank) + ".new")
      << getpid() << ' ' << world << ' ' << Variable("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
      << ' ' << Variable("MASTER_ADDR", "") << '\n';
  std::rename((PidFile(directory, rank) + ".new").c_str(), PidFile(directory, rank).c_str());
  std::ofstream(directory + "/starts", std::ios::app) << restart + " " + rank + " " + world + "\n";
  WaitForAll(directory + "/starts", restart, std::atoi(world.c_str()));

  if (mode == "ok" || (mode == "answer" && !is_victim)) return 0;
  if ((mode == "recover" || mode == "falter") && restart != "0") return 0;
  if (mode == "regrow" && restart == "2") return 0;
  if (mode == "deaf" && restart != "0") {
    sleep(3);
    return 0;
  }
  if (mode == "parent" || mode == "leave") StartChild(directory, rank);
  if (mode == "leave") return 0;
  if (!may_finish && is_victim && !(mode == "regrow" && restart == "1")) {
    if (mode == "explain") usleep(600000);
    if (mode == "exit" || mode == "answer" || mode == "falter" || mode == "explain")
      return std::atoi(argv[4]);
    usleep(200000);  // mpirun does not name a worker that dies during startup
    std::ofstream(directory + "/died") << "";
    raise(SIGKILL);
  }
  if (mode == "explain") return std::atoi(argv[5]);
  if (mode == "cascade") {
    WaitForFile(directory + "/died");
    usleep(20000);
    return std::atoi(argv[4]);
  }
  for (;;) pause();
}
