// Refusals of blocks name the line that states them.

#include <gtest/gtest.h>

#include "renzan/base/error.h"
#include "renzan/model/blocks/types.h"
#include "renzan/model/match_output.h"
#include "renzan/model/reach.h"
#include "renzan/run_spec/run_spec.h"

namespace renzan {
namespace {

DatasetSchema SchemaOfRefused() {
  return {.label = "bought",
          .dense = {{.name = "price"}, {.name = "age"}, {.name = "hour"}},
          .categorical = {{.name = "user", .num_embeddings = 9},
                          {.name = "item", .num_embeddings = 50, .vocabulary = "threshold:1:abc"},
                          {.name = "clicked",
                           .num_embeddings = 50,
                           .multi_hot = true,
                           .vocabulary = "threshold:1:abc",
                           .table = "item",
                           .max_length = 4}}};
}

// What reading, and what begins a run, says of a configuration whose blocks begin in line 6.
std::string Refusal(const std::string& blocks, const std::vector<std::string>& overrides = {},
                    const std::string& more = "") {
  const std::string yaml = "data: {train: {path: d}}\n" + more +
                           "model:\n  type: blocks\n  embedding_dim: 4\n  blocks:\n" + blocks;
  try {
    TrainConfig config;
    ReadConfigText(yaml, "c.yaml", overrides,
                   [&](ConfigFields& fields) { config.Describe(fields); });
    const DatasetSchema schema = SchemaOfRefused();
    CheckTasks(config.training.loss, OutputsOf(config.model), schema);
    const ModelOptions options = ModelOptionsOf(config, schema);
    CheckInputsReachLogit(options);
    const std::unique_ptr<Model> model = MakeModel(options);
    CheckBatchStatistics(options, config.training.batch_size / config.numerics.virtual_workers);
    for (size_t output = 0; output < model->num_outputs(); ++output)
      if (const auto match = model->MatchOf(output)) CheckItemsStandAlone(*match);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
}

constexpr const char* kRest =
    R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    logit: {type: mlp, inputs: [all], layers: [1], linear_output: true}
)";

void ExpectRefusal(const std::string& blocks, const std::string& expected,
                   const std::vector<std::string>& overrides = {}, const std::string& more = "") {
  EXPECT_EQ(Refusal(blocks, overrides, more).substr(0, expected.size()), expected) << blocks;
}

TEST(RefusedBlock, IsNamedWithItsLineWhereAGraphIsNone) {
  EXPECT_EQ(Refusal(kRest), "");
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    logit:
      type: mlp
      inputs: [al]
      layers: [1]
)",
                "c.yaml:7:5: model.blocks is no graph of a model: block logit: its input 'al' does "
                "not exist");
  ExpectRefusal(R"(    logit: {type: sum, inputs: [a]}
    b: {type: sum, inputs: [a]}
    a: {type: sum, inputs: [b]}
)",
                "c.yaml:8:5: model.blocks is no graph of a model: blocks form a cycle: a → b → a");
  ExpectRefusal(std::string(kRest) + "    dense: {type: sum, inputs: [logit]}\n",
                "c.yaml:8:5: model.blocks is no graph of a model: block dense has the name of an "
                "input");
  ExpectRefusal(std::string(kRest) + "    embedding: {type: sum, inputs: [logit]}\n",
                "c.yaml:8:5: model.blocks is no graph of a model: no block can have the name");
  ExpectRefusal(std::string(kRest) + "    a b: {type: sum, inputs: [logit]}\n",
                "c.yaml:8:5: model.blocks is no graph of a model: block 'a b': names consist");
  ExpectRefusal(std::string(kRest) + "    other: {type: mlp, inputs: [all], layers: [1]}\n",
                "c.yaml:7:5: model.blocks is no graph of a model: exactly one block, which gives "
                "the logit, must be the input of no other, but logit, other are");
  ExpectRefusal(std::string(kRest) + R"(    other: {type: mlp, inputs: [all], layers: [1]}
  outputs:
    logit: {}
)",
                "c.yaml:8:5: model.blocks is no graph of a model: block other is neither the input "
                "of another nor");
  ExpectRefusal(std::string(kRest) + R"(  outputs:
    bought:
      block: lgoit
)",
                "c.yaml:9:5: model.blocks is no graph of a model: no block lgoit gives");
}

TEST(RefusedBlock, OfATypeThatHasAnotherNameSaysWhatToUse) {
  const auto refusal = [](const std::string& type) {
    return Refusal("    a: {inputs: [dense], type: " + type + "}\n");
  };
  const std::string at = "c.yaml:6:32: type cannot be ";
  EXPECT_EQ(refusal("linear"), at + "'linear': use mlp with linear_output: true");
  EXPECT_EQ(refusal("add"), at + "'add': use sum");
  EXPECT_EQ(refusal("instance_mask"),
            at + "'instance_mask': use layer_norm, mlp and multiply, as renzan train "
                 "--print-config prints them for model.type: masknet");
  EXPECT_NE(refusal("bilinar").find("did you mean 'bilinear'?"), std::string::npos);
  for (const char* type : {"linear", "add", "instance_mask"})
    EXPECT_THROW(BlockOfType(type), Error) << "it has become a block";
}

TEST(RefusedBlock, IsNamedWithItsLineWhereShapesDoNotMeet) {
  ExpectRefusal(std::string(kRest).replace(std::string(kRest).find("[1]"), 3, "[2]"),
                "c.yaml:7:5: block logit comes last, so it must give one logit, but it gives 1 "
                "vector of 2");
  ExpectRefusal(R"(    a: {type: mlp, inputs: [dense], layers: [3]}
    b: {type: mlp, inputs: [embeddings], layers: [4]}
    c: {type: pool, inputs: [embeddings.clicked]}
    both: {type: sum, inputs: [a, b]}
    all: {type: concat, inputs: [both, c]}
    logit: {type: mlp, inputs: [all], layers: [1], linear_output: true}
)",
                "c.yaml:9:5: block both takes inputs of one width, but has 1 vector of 3 and 1 "
                "vector of 4");
  ExpectRefusal(R"(    p: {type: project, inputs: [embeddings, dense], dim: 4}
    all: {type: concat, inputs: [p, embeddings.clicked]}
    logit: {type: mlp, inputs: [all], layers: [1], linear_output: true}
)",
                "c.yaml:6:5: block p takes one input, but has 2 inputs: put a concat before it");
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked]}
    attended: {type: self_attention, inputs: [all]}
    rest: {type: concat, inputs: [attended, dense]}
    logit: {type: mlp, inputs: [rest], layers: [1], linear_output: true}
)",
                "c.yaml:7:5: block attended would take unused positions of a sequence");
  ExpectRefusal(
      R"(    twice: {type: concat, inputs: [embeddings, embeddings, embeddings.clicked, dense]}
    p: {type: project, inputs: [twice], dim: 2}
    logit: {type: mlp, inputs: [p], layers: [1], linear_output: true}
)",
      "c.yaml:7:5: block p: two vectors of its input have one name");
}

TEST(RefusedBlock, IsNamedWithItsLineWhereTheDataHaveNoSuchInput) {
  ExpectRefusal(
      R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense, embeddings.hour]}
    logit: {type: mlp, inputs: [all], layers: [1], linear_output: true}
)",
      "c.yaml:6:5: block all: the dataset has no categorical feature 'hour'");
  ExpectRefusal(
      R"(    all: {type: concat, inputs: [embeddings, embeddings.clickd, dense]}
    logit: {type: mlp, inputs: [all], layers: [1], linear_output: true}
)",
      "c.yaml:6:5: block all: the dataset has no categorical feature 'clickd': did you mean "
      "'clicked'");
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    query: {type: mlp, inputs: [all], layers: [4], linear_output: true}
    logit:
      {type: sampled_softmax, inputs: [query, embeddings.item, embeddings.item.negatives]}
)",
                "c.yaml:8:5: block logit: there are no negatives 'item.negatives'");
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    query: {type: mlp, inputs: [all], layers: [4], linear_output: true}
    logit: {type: in_batch_softmax, inputs: [query, embeddings.item], item: clicked}
)",
                "c.yaml:8:5: block logit: item: the dataset has no categorical feature 'clicked'");
}

TEST(RefusedBlock, IsTheFirstOneInTheFileWhereNoneTakesAFeature) {
  ExpectRefusal(R"(    x: {type: concat, inputs: [embeddings.user, embeddings.clicked, dense]}
    logit: {type: mlp, inputs: [x], layers: [1], linear_output: true}
)",
                "c.yaml:6:5: model.blocks: no block takes embeddings.item: give it to a block");
  // The first in the file is the last of the graph.
  ExpectRefusal(R"(    logit: {type: mlp, inputs: [x], layers: [1], linear_output: true}
    x: {type: concat, inputs: [embeddings, embeddings.clicked]}
)",
                "c.yaml:6:5: model.blocks: no block takes dense, but the dataset has 3 dense");
  // An override has no line.
  ExpectRefusal("    x: {type: concat, inputs: [embeddings, embeddings.clicked]}\n",
                "c.yaml:6:5: model.blocks: no block takes dense, but",
                {"model.blocks.logit={type: mlp, inputs: [x], layers: [1], linear_output: true}"});
}

TEST(RefusedBlock, IsNamedWithItsLineWhereATrainingCannotHaveIt) {
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    normalized: {type: batch_norm, inputs: [all]}
    logit: {type: mlp, inputs: [normalized], layers: [1], linear_output: true}
)",
                "c.yaml:7:5: block normalized normalizes by the samples of a virtual worker",
                {"training.batch_size=8"});
  const std::string compared =
      R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    query: {type: mlp, inputs: [all], layers: [4], linear_output: true}
    match: {type: in_batch_softmax, inputs: [query, embeddings.item], item: item}
)";
  ExpectRefusal(compared, "c.yaml:8:5: block match takes a sample's negatives from the other",
                {"training.batch_size=8"});
  ExpectRefusal(
      compared + "    more: {type: mlp, inputs: [match], layers: [1], linear_output: true}\n",
      "c.yaml:9:5: block more takes the logit of match, which is another one");
  ExpectRefusal(
      compared,
      "c.yaml:8:5: block match: its query and its item both depend on the feature 'item'");
  ExpectRefusal(std::string(kRest) + R"(  outputs:
    bought: {block: logit}
    returned: {block: second}
)" + "",
                "c.yaml:10:5: model.blocks is no graph of a model: no block second gives");
}

TEST(RefusedBlock, IsThatOfAnOutputWithoutItsLabel) {
  ExpectRefusal(std::string(kRest) + R"(  outputs:
    clicked: {block: logit}
)",
                "c.yaml:9:5: model.outputs.clicked: the training data have no label 'clicked'");
}

TEST(RefusedBlock, IsThatOfAnOverride) {
  ExpectRefusal(kRest, "--set model.blocks.logit.layers=[2]: block logit comes last",
                {"seed=7", "model.blocks.logit.layers=[2]", "training.batch_size=16"});
  ExpectRefusal(kRest, "--set model.blocks.more={type: sum, inputs: [lgoit]}: model.blocks is no",
                {"model.blocks.more={type: sum, inputs: [lgoit]}"});
  // Of another block.
  ExpectRefusal(R"(    all: {type: concat, inputs: [embeddings, embeddings.clicked, dense]}
    logit: {type: mlp, inputs: [all], layers: [2], linear_output: true}
)",
                "c.yaml:7:5: block logit comes last",
                {"model.blocks.all.inputs=[embeddings, embeddings.clicked, dense]"});
}

// The place is no part of what is printed, compared or recorded.
TEST(RefusedBlock, PlaceIsNoPartOfTheConfiguration) {
  const auto read = [](const std::string& yaml) {
    TrainConfig config;
    ReadConfigText(yaml, "c.yaml", {}, [&](ConfigFields& fields) { config.Describe(fields); });
    return config;
  };
  const std::string model =
      "model: {type: blocks, outputs: {y: {}}, blocks: {y: {type: mlp, inputs: [dense], layers: "
      "[1], linear_output: true}}}\n";
  TrainConfig a = read("data: {train: {path: d}}\n" + model);
  TrainConfig b = read("data: {train: {path: d}}\n\n\n" + model);
  EXPECT_NE(a.model.blocks["y"].where, b.model.blocks["y"].where);
  EXPECT_EQ(a.model.outputs, b.model.outputs);
  const auto print = [](TrainConfig& config) {
    return PrintConfig([&](ConfigFields& fields) { config.Describe(fields); });
  };
  EXPECT_EQ(print(a), print(b));
}

}  // namespace
}  // namespace renzan
