#include "renzan/launch/mpirun_command.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace renzan {
namespace {

TEST(MpirunCommandTest, NumbersTheWorkers) {
  EXPECT_EQ(fmt::format("{}", fmt::join(MpirunCommand(2, false, "/bin/echo", {"a", "b"}), " ")),
            "mpirun --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader "
            "-n 1 -x RANK=0 -x LOCAL_RANK=0 /bin/echo a b : "
            "-n 1 -x RANK=1 -x LOCAL_RANK=1 /bin/echo a b");
}

TEST(MpirunCommandTest, WorkersThatShareCpusDoNotSpin) {
  EXPECT_EQ(fmt::format("{}", fmt::join(MpirunCommand(1, true, "p", {}), " ")),
            "mpirun --oversubscribe --bind-to none --mca pml ob1 --mca btl self,vader "
            "--mca mpi_yield_when_idle 1 -n 1 -x RANK=0 -x LOCAL_RANK=0 p");
}

}  // namespace
}  // namespace renzan
