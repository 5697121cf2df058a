// What workers have from the submitter of their job.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "renzan/base/file/file.h"
#include "renzan/cluster/local/supervisor/attempt.h"
#include "renzan/cluster/local/supervisor/attempt_testing.h"
#include "renzan/cluster/spec/inherited.h"

namespace renzan::cluster::local {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Supervisor, WorkersHaveWhatTheJobInherits) {
  TestAttempt attempt("echo $PATH:$GREETING:$MODE:$RANK; umask; ulimit -Sn; nice; cat " +
                      std::string("../jobs/1/attempt-0/plan.json"));
  const spec::Inherited inherited{
      .environment = {{"PATH", "/venv/bin:/usr/bin:/bin"}, {"GREETING", "hello"}, {"MODE", "slow"}},
      .umask = 027,
      .limits = {{"nofile", {.soft = 123, .hard = RLIM_INFINITY}}},
      .niceness = 19};
  attempt.plan.inherited_file = attempt.work() + "/inherited.json";
  WriteFileAtomically(attempt.plan.inherited_file, spec::InheritedToJson(inherited));
  attempt.plan.environment = {{"MODE", "fast"}};
  attempt.Start();
  EXPECT_EQ(attempt.WaitForEnd().exit_code, 0);
  EXPECT_THAT(attempt.Log(0),
              testing::StartsWith("/venv/bin:/usr/bin:/bin:hello:fast:\n0027\n123\n19\n{"));
  EXPECT_THAT(attempt.Log(0), Not(HasSubstr("\"hello\""))) << "kept in plan.json";
}

TEST(Supervisor, DoesNotStartWorkersWithoutWhatTheyInherit) {
  TestAttempt attempt("true");
  attempt.plan.inherited_file = attempt.work() + "/removed.json";
  attempt.Start();
  const AttemptEnd end = attempt.WaitForEnd();
  EXPECT_EQ(end.by, EndedBy::kCannotStart);
  EXPECT_THAT(end.message, HasSubstr("removed.json"));
}

}  // namespace
}  // namespace renzan::cluster::local
