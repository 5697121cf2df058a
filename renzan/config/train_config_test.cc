#include "renzan/config/train_config.h"

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/config/config_difference.h"

namespace renzan {
namespace {

TrainConfig Read(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  TrainConfig config;
  ReadConfigText(yaml, "c.yaml", overrides, [&](ConfigFields& fields) { config.Describe(fields); });
  return config;
}

void ExpectError(const std::string& yaml, const std::string& fragment) {
  try {
    Read(yaml);
    FAIL() << "accepted: " << yaml;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
  }
}

constexpr char kMinimal[] = "data: {train: {path: d}}\n";

TEST(TrainConfig, PrintedConfigReadsBackUnchanged) {
  const TrainConfig config = Read(kMinimal, {"numerics.virtual_workers=4", "model.top_mlp=[7, 3]"});
  TrainConfig copy = config;
  const std::string printed =
      PrintConfig([&](ConfigFields& fields) { copy.Describe(fields); }, true);
  TrainConfig again = Read(printed);
  EXPECT_EQ(again.numerics.virtual_workers, 4);
  EXPECT_EQ(again.model.top_mlp, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(PrintConfig([&](ConfigFields& fields) { again.Describe(fields); }, true), printed);
}

TEST(TrainConfig, ReadsAGraphOfBlocks) {
  const std::string yaml = std::string(kMinimal) + R"(
model:
  type: blocks
  blocks:
    deep: {type: mlp, inputs: [all], layers: [8, 1], linear_output: true}
    all: {type: concat, inputs: [embeddings, dense]}
)";
  TrainConfig config = Read(yaml, {"model.blocks.deep.dropout=0.5"});
  const Graph graph = GraphOf(config.model);
  ASSERT_EQ(graph.size(), 2u);
  EXPECT_EQ(graph[0].name, "all");
  EXPECT_EQ(graph[1].inputs, std::vector<std::string>{"all"});
  const auto print = [](TrainConfig& its) {
    return PrintConfig([&](ConfigFields& fields) { its.Describe(fields); }, true);
  };
  TrainConfig again = Read(print(config));
  EXPECT_EQ(print(again), print(config));
  // Features have their names in configurations, and escaped ones in graphs.
  TrainConfig named = config;
  const std::vector<std::string> inputs = {"embeddings.item id", "embeddings.at.hour", "dense"};
  named.model.blocks["all"].inputs = inputs;
  EXPECT_EQ(GraphOf(named.model)[0].inputs[1], "embeddings.at%2Ehour");
  EXPECT_EQ(BlocksOf(GraphOf(named.model))["all"].inputs, inputs);
  // A copy has options of its own.
  TrainConfig copy = config;
  const std::string before = print(config);
  ReadConfigText("{data: {train: {path: d}}, model: {blocks: {deep: {dropout: 0.25}}}}", "c.yaml",
                 {}, [&](ConfigFields& fields) { copy.Describe(fields); });
  EXPECT_NE(print(copy), before);
  EXPECT_EQ(print(config), before);
}

TEST(TrainConfig, SaysWhatIsWrongWithBlocks) {
  const auto blocks = [](const std::string& text) {
    return std::string(kMinimal) + "model: {type: blocks, blocks: {" + text + "}}\n";
  };
  const std::string logit = "logit: {type: mlp, inputs: [dense], layers: [1], linear_output: true}";
  Read(blocks(logit));
  ExpectError(blocks("a: {inputs: [dense]}"), "model.blocks.a.type is missing");
  ExpectError(blocks("a: {type: mpl, inputs: [dense]}"), "did you mean 'mlp'?");
  ExpectError(blocks("a: {type: sum, inputs: [dense], layers: [1]}"),
              "unknown key 'layers' in model.blocks.a");
  ExpectError(blocks("a: {type: mlp, inputs: [dense], layers: []}"), "there must be at least one");
  ExpectError(blocks("a: {type: sum, inputs: [b]}, b: {type: sum, inputs: [a]}"),
              "model.blocks is no graph of a model: blocks form a cycle: a → b → a");
  ExpectError(std::string(kMinimal) + "model: {type: blocks}\n", "must have at least one block");
  ExpectError(std::string(kMinimal) + "model: {blocks: {" + logit + "}}\n",
              "needs model.type: blocks");
}

TEST(TrainConfig, RejectsInvalidValues) {
  ExpectError(std::string(kMinimal) + "training: {batch_size: 2047}\n",
              "must be a multiple of numerics.virtual_workers (8): the nearest are 2040 and 2048");
  ExpectError(std::string(kMinimal) + "training: {batch_size: 7}\n", "the nearest is 8");
  ExpectError(std::string(kMinimal) + "workers: 9\n",
              "workers = 9 is more than the 8 virtual workers");
  ExpectError(std::string(kMinimal) + "numerics: {virtual_workers: 6}\n", "power of two");
  ExpectError(std::string(kMinimal) + "optimizer: {dense: {epsilon: 0}}\n", "out of range");
  ExpectError(std::string(kMinimal) + "features: {categorical: [a]}\n", "one entry for each");
  ExpectError(std::string(kMinimal) + "numerics: {virtual_worker: 8}\n",
              "did you mean 'virtual_workers'");
  ExpectError(std::string(kMinimal) + "model: {type: dlmr}\n", "did you mean 'dlrm'");
  ExpectError(std::string(kMinimal) + "comm: {forward: int3}\n", "fp16");
  ExpectError(std::string(kMinimal) + "comm: {dense: int8}\n", "fp16");
  ExpectError("data: {train: {path: d, rows: [5, 5]}}\n", "begin < end");
  ExpectError(std::string(kMinimal) + "model: {dropout: 1}\n", "must be below 1");
  ExpectError(std::string(kMinimal) + "model: {dropout: -0.1}\n", "out of range");
  ExpectError(std::string(kMinimal) + "optimizer: {max_gradient_norm: -1}\n", "out of range");
  ExpectError(std::string(kMinimal) + "optimizer: {dense: {weight_decay: 10}}\n",
              "times learning_rate must be below 1");
  ExpectError(std::string(kMinimal) + "optimizer: {sparse: {weight_decay: 10}}\n",
              "times learning_rate must be below 1");
  Read(std::string(kMinimal) + "optimizer: {sparse: {weight_decay: 10, weight_decay_mode: l2}}\n");
  ExpectError(std::string(kMinimal) +
                  "optimizer: {sparse: {rows: all, weight_decay: 10, weight_decay_mode: l2}}\n",
              "times learning_rate must be below 1");
  for (const char* type : {"rowwise_adagrad", "ftrl"})
    ExpectError(fmt::format("{}optimizer: {{sparse: {{rows: all, type: {}}}}}\n", kMinimal, type),
                fmt::format("rows must be touched with type: {}", type));
  ExpectError(std::string(kMinimal) +
                  "optimizer: {sparse: {rows: all}}\nnumerics: {embedding_precision: bf16}\n",
              "rows: all, which needs numerics.embedding_precision: fp32, not bf16");
  ExpectError(std::string(kMinimal) + "optimizer: {sparse: {weight_decay_mode: L2}}\n",
              "did you mean 'l2'");
  ExpectError(std::string(kMinimal) + "training: {loss: {pos_weight: 0}}\n", "greater than 0");
  ExpectError(std::string(kMinimal) + "training: {loss: {pos_weight: .nan}}\n", "out of range");
  ExpectError(std::string(kMinimal) + "training: {loss: {label_smoothing: 1}}\n", "below 1");
  ExpectError(std::string(kMinimal) + "training: {loss: {label_smoothing: -0.1}}\n",
              "out of range");
  ExpectError(std::string(kMinimal) + "training: {early_stopping: {patience: 3}}\n",
              "need data.eval.path");
  const std::string with_eval = "data: {train: {path: d}, eval: {path: e}}\n";
  ExpectError(with_eval + "training: {keep_best: true}\n", "need eval_every or eval_every_epochs");
  ExpectError(with_eval + "training: {early_stopping: {metric: accuracy}}\n", "log_loss");
  ExpectError(with_eval + "training: {ranking: [10, 0]}\n", "ranks from 1 on");
  ExpectError(std::string(kMinimal) + "training: {ranking: [10]}\n",
              "has ranking, which needs data.eval.path");
  ExpectError(with_eval +
                  "training: {eval_every: 9, keep_best: true, early_stopping: {metric: "
                  "ndcg}}\n",
              "has metric ndcg, which needs training.ranking");
  ExpectError(with_eval +
                  "training: {eval_every: 9}\noptimizer: {schedule: {plateau: {metric: "
                  "mrr, patience: 1}}}\n",
              "has schedule.plateau.metric mrr, which needs training.ranking");
  ExpectError(std::string(kMinimal) + "training: {group_by: user}\n",
              "has group_by, which needs data.eval.path");
  ExpectError(with_eval +
                  "training: {eval_every: 9, keep_best: true, early_stopping: {metric: "
                  "group_auc}}\n",
              "has metric group_auc, which needs training.group_by");
  ExpectError(with_eval +
                  "training: {eval_every: 9}\noptimizer: {schedule: {plateau: {metric: "
                  "group_auc, patience: 1}}}\n",
              "has schedule.plateau.metric group_auc, which needs training.group_by");
  ExpectError(with_eval + "training: {eval_every: 5, eval_every_epochs: 0.5}\n", "choose one");
  ExpectError(
      with_eval + "training: {eval_every: 5, keep_best: true}\ncheckpoint: {quantize: int8}\n",
      "the best model must be exact");
}

// A key that does not say what it decides would be in no rule.
TEST(TrainConfig, EveryKeySaysWhatItDecides) {
  TrainConfig config = Read(std::string(kMinimal) + "model: {tables: {a: {pooling: sum}}}\n");
  const auto values = ListConfig([&](ConfigFields& fields) { config.Describe(fields); });
  EXPECT_GT(values.size(), 80u);
  for (const ConfigValue& value : values)
    EXPECT_NE(static_cast<Decides>(value.tag), Decides::kUnsaid) << value.key();
}

// The three rules that follow, each tried with a key of each kind.
TEST(TrainConfig, WhatAKeyDecidesIsInEveryRule) {
  const struct {
    const char* change;
    bool resumes, workers_may_differ, changes_after_training;
  } kCases[] = {
      {"model.embedding_dim=8", false, false, false},
      {"training.loss.pos_weight=3", false, false, false},
      {"training.loss.label_smoothing=0.1", false, false, false},
      {"features.negatives_kept=0.5", false, false, false},
      {"data.train.rows=[0, 8]", false, false, false},
      {"numerics.row_blocks=4", false, false, false},
      {"comm.backward=fp16", false, false, false},
      {"training.batch_size=4096", false, false, true},
      {"numerics.virtual_workers=4", false, false, true},
      {"comm.forward=fp16", false, false, true},
      {"numerics.isa=avx2", true, false, true},
      {"device=cuda", true, false, true},
      {"training.epochs=3", true, false, false},
      {"sharding.default=row_wise", true, false, false},
      {"checkpoint.keep=7", true, false, false},
      {"data.eval.rows=[0, 8]", true, false, false},
      {"model.tables.a.pooling_factor=3", true, false, false},
      {"checkpoint.stage=/nvme", true, true, false},
      {"data.cache.size=1GiB", true, true, false},
      {"threads=3", true, true, false},
  };
  const std::string text = std::string(kMinimal) + "model: {tables: {a: {pooling: sum}}}\n";
  for (const auto& each : kCases) {
    const TrainConfig a = Read(text), b = Read(text, {each.change});
    EXPECT_EQ(DifferenceThatChangesBits(a, b).empty(), each.resumes) << each.change;
    EXPECT_EQ(!FirstDifference(a, b, WorkersMustAgree), each.workers_may_differ) << each.change;
    EXPECT_EQ(FirstDifference(a, b, MayChangeAfterTraining).has_value(),
              each.changes_after_training)
        << each.change;
  }
}

// Runs of earlier versions did not record the name of the first label.
TEST(TrainConfig, ALabelThatOneVersionDidNotRecordIsNoDifference) {
  const std::string features = "features={dense: [x], label: ";
  const TrainConfig before = Read(kMinimal, {"features={dense: [x]}"}),
                    now = Read(kMinimal, {features + "y}"});
  EXPECT_EQ(DifferenceThatChangesBits(before, now), "");
  EXPECT_NE(DifferenceThatChangesBits(now, Read(kMinimal, {features + "z}"})), "");
}

TEST(TrainConfig, PathsAreComparedByWhereTheyLead) {
  for (const char* key :
       {"training.initialize_from", "data.train.path", "data.eval.path", "sharding.plan"}) {
    const auto with = [&](const char* path) {
      return Read(kMinimal, {fmt::format("{}={}", key, path)});
    };
    for (const char* other : {"runs/a/", "./runs/a", "runs//a"}) {
      EXPECT_EQ(DifferenceThatChangesBits(with("runs/a"), with(other)), "") << key << other;
      EXPECT_FALSE(FirstDifference(with("runs/a"), with(other), WorkersMustAgree)) << key << other;
    }
    EXPECT_TRUE(FirstDifference(with("runs/a"), with("runs/b"), WorkersMustAgree)) << key;
  }
  const TrainConfig there = Read(kMinimal, {"training.initialize_from=runs/a"});
  EXPECT_EQ(DifferenceThatChangesBits(there, Read(kMinimal, {"training.initialize_from=b/"})),
            "training.initialize_from is runs/a there and b/ here");
}

// A resumed run may change how long it trains and which step's model it saves, but nothing that
// determines the bits of a step.
TEST(TrainConfig, RegularizationAndPrecisionChangeBits) {
  const TrainConfig config = Read(kMinimal);
  for (const char* changes :
       {"model.dropout=0.1", "optimizer.dense.weight_decay=0.1",
        "optimizer.sparse.weight_decay=0.1", "optimizer.sparse.weight_decay_mode=l2",
        "optimizer.sparse.rows=all", "optimizer.max_gradient_norm=1", "numerics.precision=bf16",
        "numerics.embedding_precision=bf16"})
    EXPECT_NE(DifferenceThatChangesBits(config, Read(kMinimal, {changes})), "") << changes;
  EXPECT_EQ(DifferenceThatChangesBits(
                config,
                Read(kMinimal, {"data.eval.path=e", "training.eval_every_epochs=0.5",
                                "training.keep_best=true", "training.early_stopping.patience=3"})),
            "");
}

// The names of columns may hold any character.
TEST(TrainConfig, TablesWhoseNamesShareAPrefixAreCompared) {
  const std::string tables =
      R"(model: {tables: {"user:geo": {pooling: sum}, "user:id": {pooling: )";
  const TrainConfig there = Read(kMinimal + tables + "sum}}}\n"),
                    here = Read(kMinimal + tables + "mean}}}\n");
  EXPECT_EQ(DifferenceThatChangesBits(there, there), "");
  EXPECT_EQ(DifferenceThatChangesBits(there, here),
            "model.tables.\"user:id\".pooling is sum there and mean here");
  // Settings that do not change the model, or equal the model's own, do not matter.
  const std::string minimal = kMinimal;
  const std::string named =
      "model: {pooling: mean, tables: {a: {pooling_factor: 3}, b: {pooling: mean}}}\n";
  EXPECT_EQ(
      DifferenceThatChangesBits(Read(minimal + named), Read(minimal + "model: {pooling: mean}\n")),
      "");
  EXPECT_EQ(DifferenceThatChangesBits(Read(minimal),
                                      Read(minimal + "model: {tables: {a: {row_blocks: 2}}}\n")),
            "model.tables.a.row_blocks is 0 there and 2 here");
  const auto first = FirstDifference(there, Read(kMinimal), WorkersMustAgree);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->key, "model.tables.\"user:geo\".pooling");
  EXPECT_EQ(first->there, "sum");
  EXPECT_EQ(first->here, "unset");
}

// The rate of every step depends on where the run ends.
TEST(TrainConfig, TheLengthChangesBitsWhereTheScheduleEndsWithTheRun) {
  const auto difference = [](const std::string& schedule, const std::string& length) {
    const std::string config =
        std::string(kMinimal) + "optimizer: {schedule: {" + schedule + "}}\n";
    return DifferenceThatChangesBits(Read(config), Read(config, {length}));
  };
  for (const char* length : {"training.epochs=2", "training.max_steps=10"}) {
    EXPECT_EQ(difference("decay_steps: 100", length), "");
    EXPECT_EQ(difference("warmup_steps: 100", length), "");
    EXPECT_EQ(difference("decay_steps: -1", "training.eval_every=10"), "");
  }
  EXPECT_EQ(
      difference("decay_steps: -1", "training.epochs=2"),
      "training.epochs is 1.0 there and 2.0 here (the learning rates decay until the end of the "
      "run, because optimizer.schedule.decay_steps is -1)");
  EXPECT_NE(difference("decay_steps: -1", "training.max_steps=10"), "");
  EXPECT_EQ(difference("decay_steps: -1", "optimizer.schedule.decay_steps=10"),
            "optimizer.schedule.decay_steps is -1 there and 10 here");
  EXPECT_NE(difference("decay_steps: 10", "optimizer.schedule.decay_floor=0.1"), "");
  ExpectError(std::string(kMinimal) + "optimizer: {schedule: {decay_floor: 1.5}}\n",
              "out of range");
  ExpectError(std::string(kMinimal) + "optimizer: {schedule: {decay_steps: -2}}\n", "out of range");
}

TEST(TrainConfig, SchedulesNameWhatTheyNeed) {
  const auto with = [](const std::string& schedule) {
    return std::string(kMinimal) + "optimizer: {schedule: {" + schedule + "}}\n";
  };
  ExpectError(with("type: cosine"), "needs decay_steps");
  ExpectError(with("type: one_cycle"), "needs decay_steps");
  ExpectError(with("type: one_cycle, decay_steps: -1, warmup_steps: 3"), "says all rates");
  ExpectError(with("type: one_cycle, decay_steps: -1, decay_floor: 0.1"), "says all rates");
  ExpectError(with("plateau: {patience: 1}"), "data.eval.path");
  ExpectError(with("plateau: {patience: 1, factor: 1}"), "must be below 1");
  ExpectError(with("plateau: {metric: auc}"), "the other keys of plateau do nothing");
  ExpectError(with("plateau: {patience: 0, factor: 0.5}"), "the other keys of plateau do nothing");
  EXPECT_EQ(Read(with("plateau: {patience: 0, factor: 0.1}")).optimizer.schedule.plateau.patience,
            0);
  EXPECT_EQ(Read(with("type: cosine, decay_steps: -1")).optimizer.schedule.type, "cosine");
}

// The rates then depend on every evaluation.
TEST(TrainConfig, WhenToEvaluateChangesBitsWithAPlateau) {
  const auto difference = [](const std::string& patience, const std::string& change) {
    const std::string config = std::string(kMinimal) +
                               "training: {eval_every: 5}\n"
                               "optimizer: {schedule: {plateau: {patience: " +
                               patience + "}}}\n";
    const std::string eval = "data.eval.path=eval";
    return DifferenceThatChangesBits(Read(config, {eval}), Read(config, {eval, change}));
  };
  EXPECT_EQ(difference("0", "training.eval_every=6"), "");
  EXPECT_EQ(difference("1", "training.eval_every=6"),
            "training.eval_every is 5 there and 6 here (evaluations change the learning rates, "
            "because of optimizer.schedule.plateau)");
  EXPECT_EQ(difference("0", "training.early_stopping.output=click"), "");
  EXPECT_EQ(difference("1", "training.early_stopping.output=click"),
            "training.early_stopping.output is \"\" there and click here (evaluations change the "
            "learning rates, because of optimizer.schedule.plateau)");
  EXPECT_EQ(difference("1", "training.epochs=2"), "");
  EXPECT_NE(difference("1", "optimizer.schedule.plateau.factor=0.5"), "");
}

}  // namespace
}  // namespace renzan
