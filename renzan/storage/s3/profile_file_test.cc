#include "renzan/storage/s3/profile_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "renzan/base/error.h"

namespace renzan::s3 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr auto kCredentials = ProfileFileKind::kCredentials;
constexpr auto kConfig = ProfileFileKind::kConfig;

std::string Value(const ProfileFile& file, const std::string& profile, const std::string& key) {
  const ProfileFile::Value* const value = file.Find(profile, key);
  return value == nullptr ? "(none)" : value->text;
}

TEST(ProfileFile, Credentials) {
  const ProfileFile file = ParseProfileFile("F",
                                            "# a comment\n"
                                            "\n"
                                            "[default]\r\n"
                                            "aws_access_key_id=ID\r\n"
                                            "AWS_Secret_Access_Key =  a/b+c=#;  \n"
                                            "  ; another\n"
                                            "[ profile x ] # here too\n"
                                            "aws_access_key_id = ID2 ; and here",
                                            kCredentials);
  EXPECT_EQ(Value(file, "default", "aws_access_key_id"), "ID");
  EXPECT_EQ(Value(file, "default", "aws_secret_access_key"), "a/b+c=#;");
  EXPECT_EQ(Value(file, "profile x", "aws_access_key_id"), "ID2");
  EXPECT_EQ(Value(file, "x", "aws_access_key_id"), "(none)");
  EXPECT_EQ(file.Where(*file.Find("profile x", "aws_access_key_id")), "F:8");
  EXPECT_THAT(ParseProfileFile("F", "", kCredentials).profiles, IsEmpty());
}

TEST(ProfileFile, Config) {
  const ProfileFile file = ParseProfileFile("F",
                                            "[default]\n"
                                            "region = r0\n"
                                            "[profile  a]\n"
                                            "region = r1\n"
                                            "[profile \"b c\"]\n"
                                            "region = r2\n"
                                            "[sso-session d]\n"
                                            "region = r3\n"
                                            "  whatever\n"
                                            "[profiled]\n"
                                            "region = r4\n"
                                            "[e]\n"
                                            "region = r5\n",
                                            kConfig);
  EXPECT_EQ(Value(file, "default", "region"), "r0");
  EXPECT_EQ(Value(file, "a", "region"), "r1");
  EXPECT_EQ(Value(file, "b c", "region"), "r2");
  EXPECT_EQ(file.profiles.size(), 3);
}

TEST(ProfileFile, NestedValuesAreSkipped) {
  const ProfileFile file = ParseProfileFile("F",
                                            "[default]\n"
                                            "s3 = # settings of others\n"
                                            "  region = nested\n"
                                            "\n"
                                            "\tmax_concurrent_requests\n"
                                            "endpoint_url = http://a\n"
                                            "output =\n",
                                            kConfig);
  EXPECT_EQ(Value(file, "default", "region"), "(none)");
  EXPECT_EQ(Value(file, "default", "s3"), "(none)");
  EXPECT_EQ(Value(file, "default", "output"), "(none)");
  EXPECT_EQ(Value(file, "default", "endpoint_url"), "http://a");
}

TEST(ProfileFile, WhatIsWrong) {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"# c\nkey = SECRET\n", "F:2: a value before the first [section]"},
      {"[a]\nSECRET\n", "F:2: neither `key = value` nor a [section]"},
      {"[a]\n= SECRET\n", "F:2: a value without a key"},
      {"[a\nkey = v\n", "F:1: a section without ']'"},
      {"[]\n", "F:1: a section without a name"},
      {"[profile ]\n", "F:1: a section without a name"},
      {"[profile \"\"]\n", "F:1: a section without a name"},
      {"[default] SECRET\n", "F:1: more text after ']'"},
      {"[default]\nk = SECRET\nK = SECRET2\n", "F:3: 'k' is in line 2 too"},
      {"[default]\n[profile b]\n[default]\n", "F:3: profile 'default' is in line 1 too"},
      {"[default]\n[profile default]\n", "F:2: profile 'default' is in line 1 too"},
      // A key that is indented by mistake must not be taken for a nested one.
      {"[default]\n  key = SECRET\n", "F:2: begins with a space"},
      {"[default]\na = 1\n  key = SECRET\n", "F:3: begins with a space"},
      {"[default]\na =\n  b = 1\n[profile b]\n  key = SECRET\n", "F:5: begins with a space"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    try {
      // [a] is not a profile of a config file:
      ParseProfileFile("F", text, text.starts_with("[a") ? kCredentials : kConfig);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig);
      EXPECT_THAT(error.what(), AllOf(StartsWith(message), Not(HasSubstr("SECRET"))));
    }
  }
}

}  // namespace
}  // namespace renzan::s3
