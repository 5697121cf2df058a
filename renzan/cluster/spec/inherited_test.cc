#include "renzan/cluster/spec/inherited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::cluster::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Variables = std::map<std::string, std::string>;

const Variables kOfSubmitter = {
    {"PATH", "/venv/bin:/bin"}, {"TOKEN", "a=b\n"},     {"BAD", "\xff"},
    {"PWD", "/home/ann"},       {"RANK", "3"},          {"RENZAN_JOB_ID", "7"},
    {"RENZAN_CPUS", "1"},       {"RENZAN_WORKER", "0"}, {"RENZAN_SOCKET", "/s"},
    {"_", "/bin/renzan"}};

TEST(Exported, AllIsWhatDoesNotDescribeTheSubmitterItself) {
  for (const char* all : {"", "ALL"}) {
    std::vector<std::string> not_utf8;
    EXPECT_THAT(Exported(all, kOfSubmitter, not_utf8),
                ElementsAre(Pair("PATH", "/venv/bin:/bin"), Pair("RENZAN_SOCKET", "/s"),
                            Pair("TOKEN", "a=b\n")));
    EXPECT_THAT(not_utf8, ElementsAre("BAD"));
  }
}

TEST(Exported, NoneIsNone) {
  std::vector<std::string> not_utf8;
  EXPECT_THAT(Exported("NONE", kOfSubmitter, not_utf8), IsEmpty());
  EXPECT_THAT(not_utf8, IsEmpty());
}

TEST(Exported, NamesAreThoseAndMustBeSet) {
  std::vector<std::string> not_utf8;
  EXPECT_THAT(Exported("TOKEN,PATH", kOfSubmitter, not_utf8),
              ElementsAre(Pair("PATH", "/venv/bin:/bin"), Pair("TOKEN", "a=b\n")));
  for (const auto& [names, message] : {std::pair("PATH,HOEM", "HOEM is not set here"),
                                       {"BAD", "BAD is not UTF-8"},
                                       {"PATH,RANK", "sets RANK itself"}}) {
    try {
      Exported(names, kOfSubmitter, not_utf8);
      ADD_FAILURE() << names;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

TEST(Inherited, IsTheSameAfterJson) {
  const Inherited inherited{.environment = {{"A", "b\n=\"c"}, {"BASH_FUNC_f%%", "() { :; }"}},
                            .umask = 027,
                            .limits = {{"core", {}}, {"nofile", {.soft = 100, .hard = 4096}}},
                            .niceness = 5};
  EXPECT_EQ(InheritedFromJson(InheritedToJson(inherited)), inherited);
}

// It comes over the daemon's socket: no user gets more than from nice(1).
TEST(Inherited, InvalidJsonIsRefused) {
  for (const char* json :
       {"", "{}", R"({"environment": {"A": 1}, "umask": 0, "limits": {}, "niceness": 0})",
        R"({"environment": {"A=B": ""}, "umask": 0, "limits": {}, "niceness": 0})",
        R"({"environment": {"": ""}, "umask": 0, "limits": {}, "niceness": 0})",
        R"({"environment": {"A": "b\u0000c"}, "umask": 0, "limits": {}, "niceness": 0})",
        R"({"environment": {}, "umask": 0, "limits": {"nofile": [1]}, "niceness": 0})"})
    EXPECT_THROW(InheritedFromJson(json), Error) << json;
  // The error is shown and logged: it quotes nothing.
  for (const char* json :
       {R"({"environment": {"TOKEN": "secret-9f3)", R"({"environment": "TOKEN=secret-9f3"})",
        R"({"environment": {"A=secret-9f3": ""}, "umask": 0, "limits": {}, "niceness": 0})"}) {
    try {
      InheritedFromJson(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
    }
  }
  const Inherited inherited =
      InheritedFromJson(R"({"environment": {}, "umask": 37777, "limits": {}, "niceness": -20})");
  EXPECT_EQ(inherited.niceness, 0);
  EXPECT_EQ(inherited.umask, 37777u & 0777u);
}

}  // namespace
}  // namespace renzan::cluster::spec
