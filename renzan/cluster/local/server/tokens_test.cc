#include "renzan/cluster/local/server/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "renzan/base/clock_testing.h"
#include "renzan/base/error.h"
#include "renzan/base/file/file.h"
#include "renzan/cluster/local/supervisor/job_user.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

class TokensTest : public ::testing::Test {
 protected:
  static std::string User() { return ::geteuid() == 0 ? "nobody" : UserName(::geteuid()); }
  Tokens Open(const std::vector<std::string>& allow_users = {"nobody"}) {
    return Tokens(path_, allow_users, clock_);
  }
  // What is thrown.
  static std::string ErrorOf(ErrorCode code, const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "tokens.json";
  ManualClock clock_;
};

TEST_F(TokensTest, ABearerIsTheUserWithoutAnOperatorsRights) {
  Tokens tokens = Open();
  const Tokens::Made made = tokens.Create(User(), 60);
  EXPECT_EQ(made.token.size(), 64u);
  const Caller caller = tokens.CallerOf(made.token);
  EXPECT_EQ(caller.name, User());
  EXPECT_EQ(UserName(caller.uid), User());
  EXPECT_TRUE(caller.by_token);
  EXPECT_FALSE(AccessControl(caller.uid, {}).IsOperator(caller));
}

TEST_F(TokensTest, OnlyTheirHashesAreKept) {
  std::string token;
  {
    Tokens tokens = Open();
    token = tokens.Create(User(), 60).token;
    tokens.Create(User(), 60);
    tokens.Revoke(2);
  }
  struct stat about;
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_THAT(ReadFile(path_), Not(HasSubstr(token)));
  Tokens tokens = Open();
  EXPECT_EQ(tokens.CallerOf(token).name, User());
  EXPECT_EQ(tokens.Create(User(), 60).record.id, 3) << "a number is not used twice";
}

TEST_F(TokensTest, OnlyForUsersWhomTheDaemonServes) {
  Tokens tokens = Open({});
  const auto denial = [&](const std::string& user) {
    return ErrorOf(ErrorCode::kUsage, [&] { tokens.Create(user, 60); });
  };
  EXPECT_THAT(denial("root"), HasSubstr("nobody is root over TCP"));
  EXPECT_THAT(denial("no-such-user"), HasSubstr("no such user"));
  const std::string other = User() == "games" ? "bin" : "games";
  EXPECT_THAT(denial(other), HasSubstr("--allow-user " + other));
  EXPECT_FALSE(FileExists(path_));
  Tokens all = Open({"*"});
  EXPECT_THAT(ErrorOf(ErrorCode::kUsage, [&] { all.Create("root", 60); }), HasSubstr("root"));
}

TEST_F(TokensTest, AUserWhoIsNoLongerServedIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to serve a user beside its own";
  const std::string token = Open().Create("nobody", 60).token;
  Tokens tokens = Open({});
  EXPECT_THAT(ErrorOf(ErrorCode::kNoPermission, [&] { tokens.CallerOf(token); }),
              HasSubstr("the daemon does not serve 'nobody'"));
}

// Its name may have been given to somebody else.
TEST_F(TokensTest, ATokenIsOfAnAccountNotOfAName) {
  const std::string token = Open().Create(User(), 60).token;
  auto all = nlohmann::json::parse(ReadFile(path_));
  all["tokens"][0]["uid"] = 4711;
  WriteFileAtomically(path_, all.dump());
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  Tokens tokens = Open();
  EXPECT_THAT(ErrorOf(ErrorCode::kNoPermission, [&] { tokens.CallerOf(token); }),
              HasSubstr("another account named"));
}

TEST_F(TokensTest, ExpiredOnesAreForgottenAfterAMonth) {
  Tokens tokens = Open();
  const std::string token = tokens.Create(User(), 60).token;
  const auto denial = [&] {
    return ErrorOf(ErrorCode::kNoPermission, [&] { tokens.CallerOf(token); });
  };
  clock_.seconds += 59;
  tokens.CallerOf(token);
  clock_.seconds += 1;
  EXPECT_THAT(denial(), HasSubstr("expired at"));
  tokens.Create(User(), 60);
  EXPECT_EQ(tokens.List().size(), 2u);
  clock_.seconds += 31 * 24 * 3600;
  tokens.Create(User(), 60);
  EXPECT_EQ(tokens.List().size(), 1u);
  EXPECT_THAT(denial(), HasSubstr("unknown"));
}

TEST_F(TokensTest, NotesItsUseOnceAnHour) {
  Tokens tokens = Open();
  const std::string token = tokens.Create(User(), 86400).token;
  EXPECT_EQ(tokens.List()[0].last_used, 0);
  tokens.CallerOf(token);
  const int64_t first = Open().List()[0].last_used;
  EXPECT_EQ(first, clock_.UnixMs());
  clock_.seconds += 3599;
  tokens.CallerOf(token);
  EXPECT_EQ(Open().List()[0].last_used, first);
  clock_.seconds += 1;
  tokens.CallerOf(token);
  EXPECT_EQ(Open().List()[0].last_used, first + 3'600'000);
  // Users can work where nothing can be written.
  clock_.seconds += 3600;
  const std::string moved = directory_.path() + "-moved";
  ASSERT_EQ(::rename(directory_.path().c_str(), moved.c_str()), 0);
  EXPECT_EQ(tokens.CallerOf(token).name, User());
  ErrorOf(ErrorCode::kCantCreate, [&] { tokens.Create(User(), 60); });
  ErrorOf(ErrorCode::kCantCreate, [&] { tokens.Revoke(1); });
  EXPECT_EQ(tokens.List().size(), 1u) << "what was not saved does not hold";
  ASSERT_EQ(::rename(moved.c_str(), directory_.path().c_str()), 0);
}

TEST_F(TokensTest, RefusesFilesThatItDidNotWrite) {
  for (const char* text : {"", "[]", "{}", R"({"next_id": 1, "tokens": [{"id": 1}]})",
                           R"({"next_id": "x", "tokens": []})"}) {
    WriteFileAtomically(path_, text);
    ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
    EXPECT_THAT(ErrorOf(ErrorCode::kData, [&] { Open(); }), HasSubstr("tokens.json")) << text;
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0620), 0);
  ErrorOf(ErrorCode::kNoPermission, [&] { Open(); });
}

}  // namespace
}  // namespace renzan::cluster::local
