#include "renzan/comm/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "renzan/base/error.h"

namespace renzan {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Rendezvous> Read(const Variables& variables) {
  return RendezvousFromEnvironment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string UsageErrorOf(const Variables& variables) {
  try {
    Read(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

TEST(RendezvousTest, NothingWithoutALauncher) {
  EXPECT_FALSE(Read({}));
  EXPECT_FALSE(Read({{"MASTER_ADDR", "10.0.0.1"}, {"RANK", ""}, {"WORLD_SIZE", ""}}));
}

TEST(RendezvousTest, Torchrun) {
  const auto worker = Read({{"RANK", "5"},
                            {"WORLD_SIZE", "8"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node0"},
                            {"MASTER_PORT", "1234"},
                            {"GLOO_SOCKET_IFNAME", "eth1"}});
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->rank, 5);
  EXPECT_EQ(worker->world_size, 8);
  EXPECT_EQ(worker->local_rank, 1);
  EXPECT_EQ(worker->master_addr, "node0");
  EXPECT_EQ(worker->master_port, 1234);
  EXPECT_EQ(worker->network_interface, "eth1");
  EXPECT_FALSE(worker->under_mpirun);
}

TEST(RendezvousTest, ByHandOnOneHost) {
  const auto worker = Read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}});
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->local_rank, 1);
  EXPECT_EQ(worker->master_port, 29500);
}

TEST(RendezvousTest, OpenMpi) {
  const Variables variables = {{"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_SIZE", "3"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
  const auto worker = Read(variables);
  ASSERT_TRUE(worker);
  EXPECT_TRUE(worker->under_mpirun);
  EXPECT_EQ(worker->rank, 2);
  EXPECT_EQ(worker->local_rank, 2);
  EXPECT_EQ(worker->master_addr, "127.0.0.1");

  Variables two_hosts = variables;
  two_hosts["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_EQ(Read(two_hosts)->master_addr, "");

  Variables contradiction = variables;
  contradiction["RANK"] = "0";
  contradiction["WORLD_SIZE"] = "3";
  EXPECT_THAT(UsageErrorOf(contradiction), testing::HasSubstr("unset RANK"));
}

TEST(RendezvousTest, SlurmOnlyWhenStartedBySrun) {
  Variables variables = {{"SLURM_PROCID", "3"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_LOCALID", "1"},
                         {"MASTER_ADDR", "node7"}};
  EXPECT_FALSE(Read(variables));
  variables["SLURM_STEP_ID"] = "4294967291";  // the batch script itself
  EXPECT_FALSE(Read(variables));
  variables["SLURM_STEP_ID"] = "0";
  const auto worker = Read(variables);
  ASSERT_TRUE(worker);
  EXPECT_EQ(worker->rank, 3);
  EXPECT_EQ(worker->world_size, 4);
  EXPECT_EQ(worker->local_rank, 1);
}

TEST(RendezvousTest, ErrorsNameTheVariable) {
  const Variables good = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "h"}};
  const auto with = [&](const char* name, const char* value) {
    Variables changed = good;
    changed[name] = value;
    return UsageErrorOf(changed);
  };
  EXPECT_THAT(with("RANK", "one"), testing::HasSubstr("RANK is 'one'"));
  EXPECT_THAT(with("RANK", "1x"), testing::HasSubstr("RANK is '1x'"));
  EXPECT_THAT(with("RANK", "-1"), testing::HasSubstr("RANK is -1"));
  EXPECT_THAT(with("RANK", "2"), testing::HasSubstr("RANK is 2, but WORLD_SIZE is 2"));
  EXPECT_THAT(with("WORLD_SIZE", "0"), testing::HasSubstr("WORLD_SIZE is 0"));
  EXPECT_THAT(with("WORLD_SIZE", ""), testing::HasSubstr("WORLD_SIZE is not"));
  EXPECT_THAT(with("RANK", ""), testing::HasSubstr("RANK is not"));
  EXPECT_THAT(with("MASTER_PORT", "70000"), testing::HasSubstr("MASTER_PORT is 70000"));
  EXPECT_THAT(with("MASTER_ADDR", ""), testing::HasSubstr("MASTER_ADDR is not set"));
}

}  // namespace
}  // namespace renzan
