#include "renzan/cluster/kubernetes/api/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "renzan/base/error.h"

namespace renzan::cluster::kubernetes {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Yaml, BecomesTheJsonThatItMeans) {
  EXPECT_EQ(JsonFromYaml("{a: 1, b: [true, 'true', 0.5, \"7\", ~, x], c: {cpu: 100m, d: -3}}", "f"),
            json::parse(R"({"a": 1, "b": [true, "true", 0.5, "7", null, "x"],
                            "c": {"cpu": "100m", "d": -3}})"));
  EXPECT_EQ(JsonFromYaml(R"({"a": {"b": ["1", 2]}})", "f"), json::parse(R"({"a":{"b":["1",2]}})"));
  for (const char* word : {"inf", "nan", "1.20.2", "10m", "0x10", "on", "no"})
    EXPECT_EQ(JsonFromYaml(word, "f"), json(word));
  EXPECT_EQ(JsonFromYaml("a: |\n  1\n", "f"), json({{"a", "1\n"}}));
}

TEST(Yaml, SaysWhereItIsWrong) {
  const auto message = [](const char* text) {
    try {
      JsonFromYaml(text, "job.yaml");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message("a: [1"), HasSubstr("job.yaml:1:"));
  EXPECT_THAT(message("a: 1\na: 2"), HasSubstr("twice"));
  EXPECT_THAT(message("a: 1\n---\na: 2"), HasSubstr("2 documents"));
  EXPECT_THAT(message((std::string(5000, '[') + std::string(5000, ']')).c_str()),
              HasSubstr("job.yaml"));
}

}  // namespace
}  // namespace renzan::cluster::kubernetes
