// device: cuda, on the GPU of the machine that runs the tests; skipped where there is none.

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>

#include "renzan/base/log.h"
#include "renzan/base/sha256.h"
#include "renzan/comm/testing.h"
#include "renzan/cuda/load.h"
#include "renzan/planning/make_plan.h"
#include "renzan/run_spec/run_spec.h"
#include "renzan/step/testing.h"

namespace renzan {
namespace {

class Device : public testing::Test {
 protected:
  void SetUp() override {
    try {
      FactsOfDevice(0);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

TrainConfig DeviceConfig() {
  TrainConfig config = SmallConfig();
  config.device = "cuda";
  config.model.bottom_mlp = {24};
  config.model.top_mlp = {20, 16};
  return config;
}

struct TestRun {
  std::string digest;          // of every parameter, row and optimizer state
  std::vector<double> losses;  // of each step, on worker 0's samples
};

TestRun TrainOn(const TrainConfig& config, int world, int64_t steps = 6,
                const DatasetSchema& schema = TestSchema()) {
  std::map<std::string, std::string> parts;
  std::mutex mutex;
  TestRun run;
  RunRanksAsThreads(world, [&](Communicator& comm) {
    ThreadPool pool(2);
    const ShardingPlan plan = PlanOf(TestSpec(config, schema), Topology::OneHost(world), 2);
    TestModel model(config, schema, comm, pool, InitialValues::kDraw, &plan);
    std::vector<Batch> slices;
    for (int64_t step = 0; step < steps; ++step) slices.push_back(MakeSlice(model, step, schema));
    std::vector<std::vector<OutputMetrics>> metrics(slices.size(), std::vector<OutputMetrics>(2));
    for (size_t i = 0; i < slices.size(); ++i) {
      // Some steps prepare the next one.
      model.Run(slices[i], static_cast<int64_t>(i), metrics[i],
                i % 4 != 2 && i + 1 < slices.size() ? &slices[i + 1] : nullptr);
      // The rows return to the host, and training continues.
      if (i == 2) DigestsOf(model);
    }
    model.step().Await();
    std::vector<double> losses;
    for (std::vector<OutputMetrics>& of_step : metrics) {
      of_step[0].Merge(of_step[1]);
      losses.push_back(of_step[0].LogLoss());
    }
    EXPECT_TRUE(model.finiteness().ok());
    const std::map<std::string, std::string> mine = DigestsOf(model);
    std::lock_guard lock(mutex);
    if (comm.rank() == 0) run.losses = losses;
    for (const auto& [name, digest] : mine)
      EXPECT_EQ(parts.emplace(name, digest).first->second, digest) << "rank " << comm.rank();
  });
  std::string all;
  for (const auto& [name, value] : parts) all += name + value;
  run.digest = Sha256Hex(all);
  return run;
}

struct Case {
  std::string model, dense, sparse, precision;
};
void PrintTo(const Case& of, std::ostream* out) {
  *out << of.model << ' ' << of.dense << ' ' << of.sparse << ' ' << of.precision;
}

class DevicePlacement : public Device, public testing::WithParamInterface<Case> {};

// With one worker, the device computes whole steps; with several, the dense part.
TEST_P(DevicePlacement, NeverChangesArithmetic) {
  TrainConfig config = DeviceConfig();
  config.model.type = GetParam().model;
  config.optimizer.dense.type = GetParam().dense;
  config.optimizer.dense.learning_rate = GetParam().dense == "sgd" ? 0.1 : 0.01;
  config.optimizer.sparse.type = GetParam().sparse;
  config.numerics.precision = GetParam().precision;
  const std::string expected = TrainOn(config, 1).digest;
  EXPECT_EQ(TrainOn(config, 1).digest, expected) << "the same again";
  for (const int world : {2, 3, 4, 7})
    EXPECT_EQ(TrainOn(config, world).digest, expected) << world << " workers";
}

INSTANTIATE_TEST_SUITE_P(ModelsAndOptimizers, DevicePlacement,
                         testing::Values(Case{"dlrm", "sgd", "sgd", "fp32"},
                                         Case{"dlrm", "adagrad", "adagrad", "tf32"},
                                         Case{"dlrm", "adam", "rowwise_adagrad", "bf16"},
                                         Case{"dlrm_dcnv2", "sgd", "rowwise_adagrad", "fp32"},
                                         Case{"dlrm_dcnv2", "adagrad", "adagrad", "bf16"},
                                         Case{"dlrm_dcnv2", "adam", "sgd", "tf32"}));

TEST_F(Device, RowBlocksWeightDecayAndShardingPlansNeverChangeArithmetic) {
  TrainConfig config = DeviceConfig();
  config.numerics.row_blocks = 4;
  config.model.tables["m"].row_blocks = 8;
  config.optimizer.sparse.type = "adagrad";
  config.optimizer.sparse.weight_decay = 0.01;
  config.optimizer.dense.weight_decay = 0.01;
  const std::string expected = TrainOn(config, 1).digest;
  for (const char* sharding : {"table_wise", "row_wise", "replicated"}) {
    config.sharding.default_sharding = sharding;
    for (const int world : {1, 2, 4})
      EXPECT_EQ(TrainOn(config, world).digest, expected) << world << " workers, " << sharding;
  }
  config.optimizer.sparse.weight_decay_mode = "l2";
  EXPECT_EQ(TrainOn(config, 2).digest, TrainOn(config, 1).digest);
}

TEST_F(Device, DropoutNeverChangesArithmetic) {
  for (const char* precision : {"fp32", "bf16"}) {
    TrainConfig config = DeviceConfig();
    config.model.dropout = 0.3;
    config.numerics.precision = precision;
    const std::string expected = TrainOn(config, 1).digest;
    for (const int world : {1, 2, 4})
      EXPECT_EQ(TrainOn(config, world).digest, expected) << world << " workers, " << precision;
    config.model.dropout = 0;
    EXPECT_NE(TrainOn(config, 1).digest, expected);
  }
}

TEST_F(Device, LossesAreThoseOfTheProcessor) {
  for (const char* type : {"dlrm", "dlrm_dcnv2"})
    for (const char* precision : {"fp32", "bf16"}) {
      TrainConfig config = DeviceConfig();
      config.model.type = type;
      config.model.dropout = type == std::string("dlrm") ? 0.2 : 0;
      config.numerics.precision = precision;
      const std::vector<double> device = TrainOn(config, 1).losses;
      config.device = "cpu";
      const std::vector<double> processor = TrainOn(config, 1).losses;
      const double tolerance = std::string(precision) == "fp32" ? 1e-5 : 5e-3;
      for (size_t i = 0; i < device.size(); ++i)
        EXPECT_NEAR(device[i], processor[i], tolerance) << type << " " << precision << " " << i;
    }
}

TEST_F(Device, PredictsLikeTheProcessor) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(2);
    TrainConfig config = DeviceConfig();
    TestModel device(config, TestSchema(), comm, pool);
    config.device = "cpu";
    TestModel processor(config, TestSchema(), comm, pool);
    const Batch slice = MakeSlice(device, 0);
    std::vector<float> here(64), there(64);
    device.step().Predict(slice, there);
    processor.step().Predict(slice, here);
    for (size_t i = 0; i < here.size(); ++i) EXPECT_NEAR(here[i], there[i], 1e-5);
  });
}

TEST_F(Device, SaysWhatItDoesNotSupport) {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(1);
    TrainConfig config = DeviceConfig();
    config.model.embedding_dim = 12;
    try {
      TestModel(config, TestSchema(), comm, pool);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_NE(std::string(error.what()).find("multiple of 8"), std::string::npos) << error.what();
    }
  });
}

// Destroys everything that this process has on the GPU, as a hardware error does.
void LoseGpu() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  CHECK(driver != nullptr);
  const auto call = [&](const char* name, auto... arguments) {
    const auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(driver, name));
    CHECK(function != nullptr && function(arguments...) == 0);
  };
  constexpr const char* kTrap =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry lose() { trap; }\n";
  void *context = nullptr, *module = nullptr, *kernel = nullptr, *none = nullptr;
  call("cuDevicePrimaryCtxRetain", &context, 0);
  call("cuCtxSetCurrent", context);
  call("cuModuleLoadData", &module, static_cast<const void*>(kTrap));
  call("cuModuleGetFunction", &kernel, module, "lose");
  call("cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, static_cast<void**>(nullptr),
       static_cast<void**>(nullptr));
}

void TrainOnLostGpu() {
  RunRanksAsThreads(1, [&](Communicator& comm) {
    ThreadPool pool(2);
    TestModel model(DeviceConfig(), TestSchema(), comm, pool);
    const Batch slice = MakeSlice(model, 0);
    std::vector<OutputMetrics> metrics(2);
    model.Run(slice, 0, metrics);
    model.step().Await();
    LoseGpu();
    try {
      model.Run(slice, 1, metrics);
      model.step().Await();
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      std::_Exit(error.exit_status());
    }
  });
  std::_Exit(0);
}

// With an exit status that makes a job's supervisor restart it.
TEST_F(Device, ALostGpuIsOneError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TrainOnLostGpu(), testing::ExitedWithCode(69), "the GPU was lost");
}

}  // namespace
}  // namespace renzan
