#include "renzan/base/process/pipe.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "renzan/base/process/child.h"

namespace renzan {
namespace {

TEST(Pipe, IsReadUntilTheLastWriterEnds) {
  Pipe pipe = MakePipe();
  const std::string text(100'000, 'x');  // more than a pipe holds
  const pid_t writer = fork();
  if (writer == 0) {
    const ssize_t written = write(pipe.write_end.get(), text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  pipe.write_end.Close();
  EXPECT_EQ(ReadToEnd(pipe.read_end), text);
  int status = -1;
  EXPECT_EQ(waitpid(writer, &status, 0), writer);
  EXPECT_EQ(status, 0);
}

TEST(Pipe, IsNotInheritedByPrograms) {
  Pipe pipe = MakePipe();
  const OrphanReaper orphans;
  const auto sleeper =
      StartChild({.argv = {"sleep", "1000"}, .environment = {"PATH=/usr/bin:/bin"}});
  ASSERT_TRUE(std::holds_alternative<pid_t>(sleeper));
  pipe.write_end.Close();
  EXPECT_EQ(ReadToEnd(pipe.read_end), "");
}

}  // namespace
}  // namespace renzan
