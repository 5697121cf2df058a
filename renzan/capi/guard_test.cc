#include "renzan/capi/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <new>

#include "renzan/base/error.h"

namespace renzan::capi {
namespace {

TEST(Guard, ExceptionsBecomeStatuses) {
  EXPECT_EQ(Guard([] {}), RENZAN_OK);
  EXPECT_EQ(Guard([] { Fail(ErrorCode::kIo, "disk {}", 3); }), RENZAN_IO);
  EXPECT_STREQ(renzan_last_error(), "disk 3");
  EXPECT_EQ(Guard([] { throw std::bad_alloc(); }), RENZAN_OS_ERROR);
  EXPECT_EQ(Guard([] { throw 3; }), RENZAN_SOFTWARE);
}

TEST(Guard, AFailedCheckDoesNotEndTheProgram) {
  EXPECT_EQ(Guard([] { CHECK_MSG(1 + 1 == 3, "so much for {}", "arithmetic"); }), RENZAN_SOFTWARE);
  EXPECT_THAT(renzan_last_error(), testing::HasSubstr("so much for arithmetic"));
}

TEST(Guard, SigpipeOfACallIsNotDelivered) {
  std::signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(Guard([] { raise(SIGPIPE); }), RENZAN_OK);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

}  // namespace
}  // namespace renzan::capi
