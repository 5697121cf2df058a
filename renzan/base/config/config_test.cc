#include "renzan/base/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/base/file/file.h"

namespace renzan {
namespace {

using ::testing::HasSubstr;

struct TableConfig {
  int dim = 16;
  std::string pooling = "sum";

  void Describe(ConfigFields& fields) {
    fields.Range("dim", &dim, 1, 4096);
    fields.Choice("pooling", &pooling, {"sum", "mean"});
  }
};

struct NumericsConfig {
  int virtual_workers = 8;
  std::string isa = "auto";

  void Describe(ConfigFields& fields) {
    fields.Range("virtual_workers", &virtual_workers, 1, 1024, "the units of dense arithmetic");
    fields.Choice("isa", &isa, {"auto", "avx2", "avx512"});
  }
};

struct TestConfig {
  bool shuffle = true;
  int64_t batch_size = 2048;
  uint64_t seed = 1;
  double learning_rate = 0.1;
  std::string name = "run";
  std::vector<int> layers = {512, 256};
  std::vector<int64_t> rows;
  std::vector<double> weights;
  std::vector<std::string> files;
  std::map<std::string, std::string> labels;
  std::map<std::string, int64_t> counts;
  NumericsConfig numerics;
  std::map<std::string, TableConfig> tables;

  void Describe(ConfigFields& fields) {
    fields.Field("shuffle", &shuffle);
    fields.Field("batch_size", &batch_size, "samples per step");
    fields.Field("seed", &seed);
    fields.Range("learning_rate", &learning_rate, 0.0, 100.0);
    fields.Field("name", &name);
    fields.Field("layers", &layers);
    fields.Field("rows", &rows);
    fields.Field("weights", &weights);
    fields.Field("files", &files);
    fields.Field("labels", &labels);
    fields.Field("counts", &counts);
    fields.Section("numerics", &numerics, "what determines every bit");
    fields.Map("tables", &tables);
    fields.Require(batch_size % numerics.virtual_workers == 0, "batch_size",
                   "must be a multiple of numerics.virtual_workers");
  }
};

TestConfig Read(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  TestConfig config;
  ReadConfigText(yaml, "config.yaml", overrides,
                 [&](ConfigFields& fields) { config.Describe(fields); });
  return config;
}

// The message of the kConfig error that reading throws.
std::string ErrorOf(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  try {
    Read(yaml, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kConfig);
    return error.what();
  }
  return "no error";
}

std::string Print(TestConfig config, bool with_docs = false) {
  return PrintConfig([&](ConfigFields& fields) { config.Describe(fields); }, with_docs);
}

TEST(Config, ReadsEveryTypeAndKeepsDefaults) {
  const TestConfig config = Read(R"(
shuffle: false
batch_size: 9000000000
seed: 18446744073709551615
learning_rate: 1e-3
name: "two words"
layers: [512, -2]
rows:
  - 10
files: [a.npy, '3']
weights: [1, .5, -.inf]
labels: {rack: r1, "odd key": '3', model: 4}
counts:
  nic: 2
numerics:
  virtual_workers: 4
tables:
  C1: {dim: 64, pooling: mean}
  C2:
)");
  EXPECT_FALSE(config.shuffle);
  EXPECT_EQ(config.batch_size, 9000000000);
  EXPECT_EQ(config.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(config.learning_rate, 1e-3);
  EXPECT_EQ(config.name, "two words");
  EXPECT_EQ(config.layers, (std::vector<int>{512, -2}));
  EXPECT_EQ(config.rows, std::vector<int64_t>{10});
  EXPECT_EQ(config.files, (std::vector<std::string>{"a.npy", "3"}));
  EXPECT_EQ(config.weights, (std::vector<double>{1, .5, -INFINITY}));
  EXPECT_EQ(config.labels,
            (std::map<std::string, std::string>{{"rack", "r1"}, {"odd key", "3"}, {"model", "4"}}));
  EXPECT_EQ(config.counts, (std::map<std::string, int64_t>{{"nic", 2}}));
  EXPECT_EQ(config.numerics.virtual_workers, 4);
  EXPECT_EQ(config.numerics.isa, "auto");
  EXPECT_EQ(config.tables.at("C1").dim, 64);
  EXPECT_EQ(config.tables.at("C1").pooling, "mean");
  EXPECT_EQ(config.tables.at("C2").dim, 16);
  EXPECT_EQ(Read("").batch_size, 2048);
  EXPECT_TRUE(Read("labels:\n").labels.empty());
  EXPECT_EQ(Read("numerics:\n").numerics.virtual_workers, 8);
}

// As in YAML 1.2; YAML 1.1 and C read them as octal.
TEST(Config, NumbersWithLeadingZerosAreDecimal) {
  const TestConfig config =
      Read("batch_size: 01600\nlearning_rate: 010\nrows: [010, -010]\nname: 010\n", {"seed=0010"});
  EXPECT_EQ(config.batch_size, 1600);
  EXPECT_EQ(config.learning_rate, 10);
  EXPECT_EQ(config.rows, (std::vector<int64_t>{10, -10}));
  EXPECT_EQ(config.seed, 10U);
  EXPECT_EQ(config.name, "010");
}

TEST(Config, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(ErrorOf("seed: 2\nnumerics:\n    virtual_worker: 4\n"),
            "config.yaml:3:5: unknown key 'virtual_worker' in numerics: did you mean "
            "'virtual_workers'?");
  EXPECT_EQ(ErrorOf("virtual_workers: 4"),
            "config.yaml:1:1: unknown key 'virtual_workers' at the top level: it belongs in "
            "section numerics");
  EXPECT_EQ(ErrorOf("numerics: {shuffle: true}"),
            "config.yaml:1:12: unknown key 'shuffle' in numerics: it belongs at the top level");
  EXPECT_EQ(ErrorOf("numerics: {qqqqqq: true}"),
            "config.yaml:1:12: unknown key 'qqqqqq' in numerics: valid keys are virtual_workers, "
            "isa");
  EXPECT_EQ(ErrorOf("tables: {C1: {dims: 3}}"),
            "config.yaml:1:15: unknown key 'dims' in tables.C1: did you mean 'dim'?");
}

TEST(Config, UnknownKeyIsReportedBeforeBrokenRules) {
  EXPECT_THAT(ErrorOf("batchsize: 100\nbatch_size: 3"), HasSubstr("unknown key 'batchsize'"));
}

TEST(Config, WrongTypesAreErrors) {
  EXPECT_EQ(ErrorOf("batch_size: 1.5"),
            "config.yaml:1:13: batch_size must be a whole number, found '1.5'");
  EXPECT_THAT(ErrorOf("batch_size: 10k"), HasSubstr("must be a whole number, found '10k'"));
  EXPECT_THAT(ErrorOf("batch_size: '8'"), HasSubstr("a whole number, found the text '8'"));
  EXPECT_THAT(ErrorOf("batch_size: +-8"), HasSubstr("must be a whole number"));
  EXPECT_THAT(ErrorOf("batch_size:"), HasSubstr("must be a whole number, found nothing"));
  EXPECT_THAT(ErrorOf("batch_size: [1]"), HasSubstr("must be a whole number, found a list"));
  EXPECT_THAT(ErrorOf("batch_size: 9223372036854775808"), HasSubstr("is too large"));
  EXPECT_THAT(ErrorOf("seed: 18446744073709551616"), HasSubstr("is too large"));
  EXPECT_THAT(ErrorOf("seed: -1"), HasSubstr("a whole number that is not negative"));
  EXPECT_THAT(ErrorOf("learning_rate: fast"), HasSubstr("must be a number, found 'fast'"));
  EXPECT_THAT(ErrorOf("learning_rate: inf"), HasSubstr("must be a number, found 'inf'"));
  EXPECT_THAT(ErrorOf("learning_rate: 1e999"), HasSubstr("is too large"));
  EXPECT_THAT(ErrorOf("shuffle: yes"), HasSubstr("must be true or false, found 'yes'"));
  EXPECT_THAT(ErrorOf("name: [a]"), HasSubstr("name must be text, found a list"));
  EXPECT_THAT(ErrorOf("name: ~"), HasSubstr("name must be text, found nothing"));
  EXPECT_THAT(ErrorOf("layers: 512"), HasSubstr("layers must be a list, such as [1, 2]"));
  EXPECT_THAT(ErrorOf("files: renzan train c.yaml"),
              HasSubstr("files must be a list, such as [renzan, train, c.yaml], found 'renzan"));
  EXPECT_THAT(ErrorOf("files: {a: b}"), HasSubstr("files must be a list, such as [a, b]"));
  EXPECT_EQ(ErrorOf("layers: [512, a]"),
            "config.yaml:1:15: layers[1] must be a whole number, found 'a'");
  EXPECT_THAT(ErrorOf("layers: [3000000000]"), HasSubstr("layers[0]: '3000000000' is too large"));
  EXPECT_EQ(ErrorOf("counts: {nic: two}"),
            "config.yaml:1:15: counts.nic must be a whole number, found 'two'");
  EXPECT_EQ(ErrorOf("labels: {rack: [r1]}"),
            "config.yaml:1:16: labels.rack must be text, found a list");
  EXPECT_EQ(ErrorOf("labels: [rack]"),
            "config.yaml:1:9: labels must be a mapping, such as {name: value}, found a list");
  EXPECT_THAT(ErrorOf("labels: {a: x, a: y}"), HasSubstr("key 'a' is given twice"));
  EXPECT_THAT(
      ErrorOf("numerics: 4"),
      HasSubstr("numerics must be a section with the keys virtual_workers, isa, found '4'"));
  EXPECT_THAT(ErrorOf("tables: [C1]"), HasSubstr("tables must be a section, found a list"));
  EXPECT_THAT(ErrorOf("tables: {C1: 4}"),
              HasSubstr("tables.C1 must be a section with the keys dim, pooling, found '4'"));
}

TEST(Config, ImpossibleValuesAreErrors) {
  EXPECT_EQ(ErrorOf("numerics: {isa: avx521}"),
            "config.yaml:1:17: isa cannot be 'avx521': allowed are auto, avx2, avx512; did you "
            "mean 'avx512'?");
  EXPECT_THAT(ErrorOf("learning_rate: -1"),
              HasSubstr("-1 is out of range: learning_rate must be between 0 and 100"));
  EXPECT_THAT(ErrorOf("learning_rate: .nan"), HasSubstr("out of range"));
  EXPECT_EQ(ErrorOf("\nbatch_size: 12"),
            "config.yaml:2:13: batch_size must be a multiple of numerics.virtual_workers");
  EXPECT_EQ(ErrorOf("numerics: {virtual_workers: 3}"),
            "config.yaml: batch_size must be a multiple of numerics.virtual_workers");
}

TEST(Config, BrokenFilesAreErrors) {
  EXPECT_EQ(ErrorOf("seed: 1\nname: a\nseed: 2\n"),
            "config.yaml:3:1: key 'seed' is given twice, first at config.yaml:1:1: remove one");
  EXPECT_THAT(ErrorOf("layers: [1, 2\nseed: 3\n"), HasSubstr("config.yaml:2:"));
  EXPECT_THAT(ErrorOf("layers: [1, 2\nseed: 3\n"), HasSubstr("not valid YAML"));
  EXPECT_THAT(ErrorOf("tables:\n   C1: {dim: 4}\n  C2: {dim: 4}\n"),
              HasSubstr("config.yaml:3:3: not valid YAML: this line is indented differently"));
  EXPECT_THAT(ErrorOf("layers:\n   - 1\n  - 2\n"), HasSubstr("is indented differently"));
  EXPECT_THAT(ErrorOf("layers: [1, 2"), HasSubstr("not valid YAML: a '[' above is never closed"));
  EXPECT_THAT(ErrorOf("counts: {a: 1"), HasSubstr("not valid YAML: a '{' above is never closed"));
  EXPECT_THAT(ErrorOf("just words"), HasSubstr("config.yaml:1:1: expected 'key: value' lines"));
  EXPECT_THAT(ErrorOf("seed: 1\n---\nseed: 2\n"), HasSubstr("a second YAML document"));
  EXPECT_THAT(ErrorOf("? [a, b]\n: 1\n"), HasSubstr("a key must be a plain word"));
  EXPECT_THAT(ErrorOf("tables: &t {C1: *t}"), HasSubstr("nested too deeply"));
  try {
    ReadConfigFile("/no/such/config.yaml", {}, [](ConfigFields&) {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoInput);
    EXPECT_THAT(error.what(), HasSubstr("/no/such/config.yaml"));
  }
}

TEST(Config, OverridesWinOverTheFile) {
  const TestConfig config =
      Read("numerics: {virtual_workers: 16}\nlayers: wrong but replaced\n",
           {"numerics.virtual_workers=2", "layers=[1, 2]", "tables.C1.dim=128", "labels={rack: r1}",
            "labels.model=a100", "name=", "numerics.virtual_workers=4", "files=[a=b]"});
  EXPECT_EQ(config.numerics.virtual_workers, 4);
  EXPECT_EQ(config.layers, (std::vector<int>{1, 2}));
  EXPECT_EQ(config.tables.at("C1").dim, 128);
  EXPECT_EQ(config.labels, (std::map<std::string, std::string>{{"rack", "r1"}, {"model", "a100"}}));
  EXPECT_EQ(config.name, "");
  EXPECT_EQ(config.files, std::vector<std::string>{"a=b"});
}

TEST(Config, BadOverridesNameThemselves) {
  EXPECT_EQ(ErrorOf("", {"numerics.isa=avx9"}),
            "--set numerics.isa=avx9: isa cannot be 'avx9': allowed are auto, avx2, avx512; did "
            "you mean 'avx2'?");
  EXPECT_EQ(ErrorOf("", {"numeric.isa=avx2"}),
            "--set numeric.isa=avx2: unknown key 'numeric' at the top level: did you mean "
            "'numerics'?");
  EXPECT_THAT(ErrorOf("", {"seed"}), HasSubstr("--set seed: expected key=value"));
  EXPECT_THAT(ErrorOf("", {"=3"}), HasSubstr("expected key=value"));
  EXPECT_THAT(ErrorOf("", {"numerics..isa=3"}), HasSubstr("an empty word in key"));
  std::string deep = "numerics";
  for (int level = 0; level < 100'000; ++level) deep += ".a";
  EXPECT_THAT(ErrorOf("", {deep + "=1"}), HasSubstr("...: nested too deeply"));
  EXPECT_THAT(ErrorOf("", {"seed="}), HasSubstr("must be a whole number, found the text ''"));
  EXPECT_THAT(ErrorOf("", {"layers=[1"}), HasSubstr("--set layers=[1: not valid YAML"));
  EXPECT_THAT(ErrorOf("layers: [1]", {"layers.0=2"}),
              HasSubstr("--set layers.0=2: 'layers' has no keys of its own"));
}

TEST(Config, PrintReadsBackToTheSameValues) {
  TestConfig config;
  config.learning_rate = 0.1 + 0.2;
  config.seed = std::numeric_limits<uint64_t>::max();
  config.files = {"yes", "3",   "a b",  "quote\" back\\ tab\t", "",
                  "ünï", "- x", "null", "/data/a.npy"};
  config.weights = {1, 1e300, INFINITY};
  config.labels = {{"a b", "x: y"}, {"", "{"}, {"on", "off"}, {"plain", "word"}};
  config.counts = {{"nic", -1}, {"3", 3}};
  config.tables["C1"].dim = 8;
  config.tables["on"].pooling = "mean";
  const std::string text = Print(config);
  const TestConfig back = Read(text);
  EXPECT_EQ(back.learning_rate, config.learning_rate);
  EXPECT_EQ(back.files, config.files);
  EXPECT_EQ(back.weights, config.weights);
  EXPECT_EQ(back.labels, config.labels);
  EXPECT_EQ(back.counts, config.counts);
  EXPECT_EQ(back.tables.size(), 2u);
  EXPECT_EQ(Print(back), text);
}

// YAML readers do not accept longer keys in plain style.
TEST(Config, OptionalValuesMayBeNone) {
  struct Optional {
    std::optional<int> most;
    std::optional<std::vector<std::string>> users;
  };
  const auto describe = [](Optional& config) {
    return [&config](ConfigFields& fields) {
      fields.Field("most", &config.most);
      fields.Field("users", &config.users);
    };
  };
  const auto read = [&](std::string_view yaml, Optional config = {}) {
    ReadConfigText(yaml, "c.yaml", {}, describe(config));
    return config;
  };
  using Names = std::vector<std::string>;
  Optional none = read("");
  EXPECT_FALSE(none.most || none.users);
  EXPECT_EQ(PrintConfig(describe(none)), "most: ~\nusers: ~\n");
  Optional given = read("most: -1\nusers: []");
  EXPECT_EQ(given.most, -1);
  EXPECT_EQ(given.users, Names());
  EXPECT_EQ(PrintConfig(describe(given)), "most: -1\nusers: []\n");
  EXPECT_EQ(read("users: [ann, bob]", given).users, (Names{"ann", "bob"}));
  EXPECT_EQ(read("", given).most, -1);
  const Optional reset = read(PrintConfig(describe(none)), given);
  EXPECT_FALSE(reset.most || reset.users);
  EXPECT_THROW(read("most: many"), Error);
  EXPECT_THROW(read("users: ann"), Error);
}

TEST(Config, NamesOfAnyLengthReadBack) {
  const std::string name(2000, 'x'), quoted(600, '"');
  TestConfig config;
  config.labels = {{name, "a"}, {quoted, "b"}, {"c", "d"}};
  config.tables[name].dim = 8;
  config.tables[quoted].dim = 4;
  const TestConfig back = Read(Print(config));
  EXPECT_EQ(back.labels, config.labels);
  EXPECT_EQ(back.tables.size(), 2u);
  EXPECT_EQ(back.tables.at(name).dim, 8);
  EXPECT_EQ(back.tables.at(quoted).dim, 4);
}

TEST(Config, PrintsInDeclaredOrder) {
  TestConfig config;
  config.counts["nic"] = 1;
  config.tables["C1"];
  EXPECT_EQ(Print(config, true), R"(shuffle: true
# samples per step
batch_size: 2048
seed: 1
learning_rate: 0.1
name: run
layers: [512, 256]
rows: []
weights: []
files: []
labels: {}
counts: {nic: 1}
# what determines every bit
numerics:
  # the units of dense arithmetic
  virtual_workers: 8
  # allowed: auto, avx2, avx512
  isa: auto
tables:
  C1:
    dim: 16
    # allowed: sum, mean
    pooling: sum
)");
}

TEST(Config, ListsValuesByPath) {
  TestConfig config;
  config.labels = {{"a: b", "c"}};
  for (const char* name : {"user", "user:geo", "user:id"}) config.tables[name].pooling = name;
  std::map<std::vector<std::string>, std::string> values;
  std::set<std::string> keys;
  for (const ConfigValue& value :
       ListConfig([&](ConfigFields& fields) { config.Describe(fields); })) {
    EXPECT_TRUE(values.emplace(value.path, value.text).second) << value.key();
    EXPECT_TRUE(keys.insert(value.key()).second) << value.key();
  }
  EXPECT_EQ(values.at({"numerics", "virtual_workers"}), "8");
  EXPECT_EQ(values.at({"labels"}), "{\"a: b\": c}");
  EXPECT_EQ(values.at({"tables", "user", "pooling"}), "user");
  EXPECT_EQ(values.at({"tables", "user:geo", "pooling"}), "\"user:geo\"");
  EXPECT_EQ(values.at({"tables", "user:id", "pooling"}), "\"user:id\"");
  EXPECT_TRUE(keys.contains("tables.\"user:id\".pooling"));
}

TEST(Config, NearestNameTellsATypoFromAnotherWord) {
  const std::vector<std::string> names = {"criteo", "synth", "csv"};
  EXPECT_EQ(NearestName("cirteo", names), "criteo");
  EXPECT_EQ(NearestName("Synth", names), "synth");
  EXPECT_EQ(NearestName("parquet", names), "");
  // A short word with two other letters is another one.
  const std::vector<std::string> short_names = {"nodes", "user_id", "u"};
  EXPECT_EQ(NearestName("model", short_names), "");
  EXPECT_EQ(NearestName("noeds", short_names), "nodes");
  EXPECT_EQ(NearestName("node", short_names), "nodes");
  EXPECT_EQ(NearestName("item", short_names), "");
  EXPECT_EQ(NearestName("item_id", short_names), "");
  EXPECT_EQ(NearestName("v", short_names), "");
}

// A rule may be about a key that the file has and another that the command line has.
TEST(Config, ABrokenRuleNamesTheArgumentThatBreaksIt) {
  const std::string file = "seed: 3\nbatch_size: 2048\nnumerics:\n  virtual_workers: 8\n";
  const std::string rule = "batch_size must be a multiple of numerics.virtual_workers";
  EXPECT_EQ(ErrorOf(file, {"numerics.virtual_workers=3"}),
            "--set numerics.virtual_workers=3: " + rule);
  EXPECT_EQ(ErrorOf(file, {"batch_size=2047"}), "--set batch_size=2047: " + rule);
  EXPECT_EQ(ErrorOf(file, {"numerics={virtual_workers: 5}"}),
            "--set numerics={virtual_workers: 5}: " + rule);
  EXPECT_EQ(ErrorOf(file, {"seed=4", "numerics.virtual_workers=3", "name=workers"}),
            "--set numerics.virtual_workers=3: " + rule);
  // An unrelated override is not blamed.
  EXPECT_EQ(ErrorOf("batch_size: 2047\n", {"seed=4"}), "config.yaml:1:13: " + rule);
}

}  // namespace
}  // namespace renzan
