#include "renzan/cluster/local/controller/access.h"

#include <gmock/gmock.h>

#include <functional>

#include "renzan/base/error.h"

namespace renzan::cluster::local {
namespace {

using ::testing::HasSubstr;

const Caller kRoot{.uid = 0, .name = "root"}, kDaemon{.uid = 500, .name = "renzan"};
const Caller kAnn{.uid = 1000, .name = "ann"}, kBob{.uid = 1001, .name = "bob"};

// The message of the Error kNoPermission that `act` throws; "" if it throws none.
std::string Denial(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoPermission);
    return error.what();
  }
  return "";
}

TEST(AccessControl, AJobIsItsUsersAndTheOperators) {
  const AccessControl access(kDaemon.uid, {});
  JobRecord job;
  job.id = 7;
  job.user = "ann";
  job.uid = kAnn.uid;
  for (const Caller& caller : {kAnn, kDaemon, kRoot}) {
    EXPECT_TRUE(access.MayChange(job, caller)) << caller.name;
    EXPECT_EQ(Denial([&] { access.RequireOwner(job, caller); }), "") << caller.name;
  }
  EXPECT_FALSE(access.MayChange(job, kBob));
  EXPECT_THAT(Denial([&] { access.RequireOwner(job, kBob); }), HasSubstr("job 7 belongs to ann"));
}

TEST(AccessControl, OperatorsAreRootAndTheDaemonsUser) {
  const AccessControl access(kDaemon.uid, {});
  EXPECT_EQ(Denial([&] { access.RequireOperator(kRoot); }), "");
  EXPECT_EQ(Denial([&] { access.RequireOperator(kDaemon); }), "");
  EXPECT_THAT(Denial([&] { access.RequireOperator(kAnn); }), HasSubstr("only the operator"));
}

// Whoever has a token is never the operator, also if it is of the daemon's own user.
TEST(AccessControl, ATokenMakesNobodyAnOperator) {
  const AccessControl access(kDaemon.uid, {.max_pending_jobs = 0});
  for (Caller caller : {kRoot, kDaemon}) {
    EXPECT_TRUE(access.SubmitterOf(caller).administrator);
    access.RequireWithinLimits(caller, {}, 0, {});
    caller.by_token = true;
    EXPECT_THAT(Denial([&] { access.RequireOperator(caller); }), HasSubstr("only the operator"));
    EXPECT_FALSE(access.SubmitterOf(caller).administrator);
    EXPECT_NE(Denial([&] { access.RequireWithinLimits(caller, {}, 0, {}); }), "");
  }
  JobRecord job;
  job.uid = kDaemon.uid;
  Caller owner = kDaemon;
  owner.by_token = true;
  EXPECT_TRUE(access.MayChange(job, owner)) << "it is their job";
  job.uid = kAnn.uid;
  EXPECT_FALSE(access.MayChange(job, owner));
}

TEST(AccessControl, OnlyARootDaemonRunsJobsOfOtherUsers) {
  const AccessControl own(kDaemon.uid, {}), of_root(0, {});
  EXPECT_EQ(Denial([&] { own.RequireCanRunAs(kDaemon); }), "");
  EXPECT_NE(Denial([&] { own.RequireCanRunAs(kRoot); }), "");
  EXPECT_EQ(Denial([&] { of_root.RequireCanRunAs(kAnn); }), "");
}

TEST(AccessControl, LimitsBindUsersButNotOperators) {
  const AccessControl access(
      kDaemon.uid, {.max_pending_jobs = 2, .max_pending_specs = "1MiB", .not_preemptible = false});
  const auto denial = [&](const Caller& caller, const spec::JobSpec& spec, int64_t bytes,
                          const PendingUse& pending) {
    return Denial([&] { access.RequireWithinLimits(caller, spec, bytes, pending); });
  };
  spec::JobSpec plain, unstoppable, grand;
  unstoppable.preemptible = false;
  grand.grand_challenge = true;
  constexpr int64_t kMib = 1 << 20;
  EXPECT_EQ(denial(kAnn, plain, kMib / 2, {.jobs = 1, .text_bytes = kMib / 2}), "");
  EXPECT_THAT(denial(kAnn, unstoppable, 0, {}), HasSubstr("limits.not_preemptible"));
  EXPECT_THAT(denial(kAnn, grand, 0, {}), HasSubstr("limits.grand_challenge"));
  EXPECT_THAT(denial(kAnn, plain, 0, {.jobs = 2}), HasSubstr("limits.max_pending_jobs"));
  EXPECT_THAT(denial(kAnn, plain, kMib, {.jobs = 1, .text_bytes = 1}),
              AllOf(HasSubstr("specifications and environments"), HasSubstr("--export NONE"),
                    HasSubstr("limits.max_pending_specs")));
  for (const spec::JobSpec& spec : {unstoppable, grand})
    EXPECT_EQ(denial(kDaemon, spec, kMib, {.jobs = 2, .text_bytes = kMib}), "");
}

TEST(AccessControl, QueuesKnowTheOperatorsAndTheGroupsOfOthers) {
  const AccessControl access(kDaemon.uid, {.max_priority = 5});
  Caller ann = kAnn;
  ann.groups = {"users", "vision"};
  const spec::Submitter submitter = access.SubmitterOf(ann);
  EXPECT_EQ(submitter.user, "ann");
  EXPECT_EQ(submitter.groups, ann.groups);
  EXPECT_EQ(submitter.max_priority, 5);
  EXPECT_FALSE(submitter.administrator);
  for (const Caller& caller : {kDaemon, kRoot})
    EXPECT_TRUE(access.SubmitterOf(caller).administrator) << caller.name;
}

}  // namespace
}  // namespace renzan::cluster::local
