#include "renzan/cluster/local/server/api_connections.h"

#include <gtest/gtest.h>

namespace renzan::cluster::local {
namespace {

using Place = ConnectionBook::Place;

constexpr uid_t kDaemon = 500, kAnn = 1000, kBob = 1001, kCat = 1002;
constexpr ConnectionLimits kFew{
    .per_user = 2, .users_together = 3, .per_operator = 2, .refusals = 3, .refusals_per_user = 2};

TEST(ConnectionBook, EachUserHasTheirOwnShare) {
  ConnectionBook book(kFew, kDaemon);
  EXPECT_EQ(book.Open(1, kAnn), Place::kServed);
  EXPECT_EQ(book.Open(2, kAnn), Place::kServed);
  EXPECT_EQ(book.Open(3, kAnn), Place::kRefused);
  EXPECT_EQ(book.Open(4, kAnn), Place::kRefused);
  EXPECT_EQ(book.Open(5, kAnn), Place::kNone);  // and is not counted
  EXPECT_EQ(book.PlaceOf(2), Place::kServed);
  EXPECT_EQ(book.PlaceOf(3), Place::kRefused);
  EXPECT_EQ(book.LimitFor(3), 2);
  EXPECT_EQ(book.Open(6, kBob), Place::kServed);

  book.Close(5);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kAnn), Place::kRefused);
  book.Close(1);
  EXPECT_EQ(book.Open(1, kAnn), Place::kServed);
}

TEST(ConnectionBook, AllUsersTogetherLeaveRoomForRootAndTheOperator) {
  ConnectionBook book(kFew, kDaemon);
  book.Open(1, kAnn);
  book.Open(2, kAnn);
  book.Open(3, kBob);
  EXPECT_EQ(book.Open(4, kCat), Place::kRefused);
  EXPECT_EQ(book.Open(5, kCat), Place::kRefused);
  EXPECT_EQ(book.Open(6, kBob), Place::kRefused);
  EXPECT_EQ(book.Open(7, kBob), Place::kNone);  // so many refusals at a time
  int fd = 10;
  for (const uid_t uid : {uid_t{0}, kDaemon}) {
    EXPECT_EQ(book.Open(fd++, uid), Place::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Place::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Place::kNone);
  }
  book.Close(3);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kCat), Place::kServed);
}

TEST(ConnectionBook, WhoHasMoreThanHalfIsCrowded) {
  ConnectionBook book({.per_user = 4}, kDaemon);
  book.Open(1, kAnn);
  book.Open(2, kAnn);
  EXPECT_FALSE(book.IsCrowded(1));
  book.Open(3, kAnn);
  EXPECT_TRUE(book.IsCrowded(1));
  book.Close(3);
  EXPECT_FALSE(book.IsCrowded(1));
}

}  // namespace
}  // namespace renzan::cluster::local
