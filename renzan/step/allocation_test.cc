// Once warmed up, a step allocates nothing. This test replaces operator new by one that counts.
// Arrays aligned to cache lines count, too, because their owners are allocated by it.
//
// Each worker has one thread, because a thread's scratch memory grows when the thread first does a
// part of a step, and on a busy machine that may happen late.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "renzan/comm/backends.h"
#include "renzan/comm/testing.h"
#include "renzan/model/catalogue/catalogue.h"
#include "renzan/step/testing.h"

namespace {
std::atomic<int64_t> allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace renzan {
namespace {

// Counts the allocations of a few steps of all workers, after every batch has been seen.
int64_t AllocationsOfSteps(const TrainConfig& config, Communicator& comm,
                           const DatasetSchema& schema = TestSchema()) {
  constexpr int64_t kBatches = 3;
  ThreadPool pool(1);
  TestModel model(config, schema, comm, pool);
  std::vector<OutputMetrics> metrics = model.MakeMetrics();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < kBatches; ++i) batches.push_back(MakeSlice(model, i, schema));
  int64_t step = 0;
  for (; step < 40 * kBatches; ++step)
    model.Run(batches[static_cast<size_t>(step % kBatches)], step, metrics,
              &batches[static_cast<size_t>((step + 1) % kBatches)]);
  comm.Barrier();
  const int64_t before = allocations;
  comm.Barrier();
  for (int64_t i = 0; i < kBatches; ++i, ++step)
    model.Run(batches[static_cast<size_t>(step % kBatches)], step, metrics,
              &batches[static_cast<size_t>((step + 1) % kBatches)]);
  comm.Barrier();
  const int64_t after = allocations;
  comm.Barrier();
  return after - before;
}

int64_t AllocationsOfSteps(const TrainConfig& config, int workers) {
  if (workers == 1) return AllocationsOfSteps(config, *MakeLocalCommunicator());
  int64_t count = 0;
  RunRanksAsThreads(workers, [&](Communicator& comm) {
    const int64_t here = AllocationsOfSteps(config, comm);
    if (comm.rank() == 0) count = here;
  });
  return count;
}

TEST(Step, AllocatesNothing) {
  const int64_t before = allocations;
  delete new int;
  ASSERT_EQ(allocations, before + 1) << "operator new is not counted";
  for (const auto& [model, workers] : {std::pair{"dlrm", 1}, {"dlrm", 3}, {"dlrm_dcnv2", 1}}) {
    SCOPED_TRACE(workers);
    TrainConfig config = SmallConfig();
    config.model.type = model;
    EXPECT_EQ(AllocationsOfSteps(config, workers), 0) << model;
    config.numerics.precision = config.numerics.embedding_precision = "bf16";
    config.model.dropout = 0.2;
    config.model.normalization = "batch";
    config.optimizer.dense.type = "adam";
    config.optimizer.sparse.type = "rowwise_adagrad";
    config.optimizer.sparse.weight_decay = 0.1;
    config.optimizer.sparse.weight_decay_mode = "l2";
    config.optimizer.max_gradient_norm = 0.1;
    config.comm.forward = config.comm.backward = config.comm.dense = "fp16";
    EXPECT_EQ(AllocationsOfSteps(config, workers), 0) << model << " with everything";
    config.comm.backward = "int4";
    config.comm.error_feedback_rows = 16;
    EXPECT_EQ(AllocationsOfSteps(config, workers), 0) << model << " with error feedback";
  }
}

TEST(Step, AllocatesNothingInAnyModelOfTheCatalogue) {
  for (const CatalogueEntry& entry : Catalogue()) {
    TrainConfig config = SmallConfig();
    config.model.type = entry.name;
    config.model.item_features = {"a"};
    config.model.expert_mlp = config.model.tower_mlp = {8};
    config.model.mask_width = 8;
    DatasetSchema schema = TestSchema();
    schema.further_labels = {{.name = "bought"}};
    if (entry.needs_sequences) {
      schema.categorical[2].max_length = 4;
      schema.categorical[2].table = "b";
      schema.categorical[2].num_embeddings = schema.categorical[1].num_embeddings;
    }
    if (entry.takes_negatives) config.model.negatives = {{"b", 3}};
    EXPECT_EQ(AllocationsOfSteps(config, *MakeLocalCommunicator(), schema), 0) << entry.name;
  }
}

}  // namespace
}  // namespace renzan
