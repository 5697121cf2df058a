#include "renzan/cluster/local/server/api_connections.h"

#include <gtest/gtest.h>

namespace renzan::cluster::local {
namespace {

using Admission = ConnectionTable::Admission;

constexpr uid_t kDaemon = 500, kAnn = 1000, kBob = 1001, kCat = 1002;
constexpr ConnectionLimits kFew{
    .per_user = 2, .all_users = 3, .per_operator = 2, .refusals = 3, .refusals_per_user = 2};

TEST(ConnectionTable, LimitsEachUser) {
  ConnectionTable book(kFew, kDaemon);
  EXPECT_EQ(book.Open(1, kAnn), Admission::kServed);
  EXPECT_EQ(book.Open(2, kAnn), Admission::kServed);
  EXPECT_EQ(book.Open(3, kAnn), Admission::kRefused);
  EXPECT_EQ(book.Open(4, kAnn), Admission::kRefused);
  EXPECT_EQ(book.Open(5, kAnn), Admission::kNone);  // not counted
  EXPECT_EQ(book.AdmissionOf(2), Admission::kServed);
  EXPECT_EQ(book.AdmissionOf(3), Admission::kRefused);
  EXPECT_EQ(book.LimitFor(3), 2);
  EXPECT_EQ(book.Open(6, kBob), Admission::kServed);

  book.Close(5);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kAnn), Admission::kRefused);
  book.Close(1);
  EXPECT_EQ(book.Open(1, kAnn), Admission::kServed);
}

TEST(ConnectionTable, ReservesConnectionsForRootAndTheOperator) {
  ConnectionTable book(kFew, kDaemon);
  book.Open(1, kAnn);
  book.Open(2, kAnn);
  book.Open(3, kBob);
  EXPECT_EQ(book.Open(4, kCat), Admission::kRefused);
  EXPECT_EQ(book.Open(5, kCat), Admission::kRefused);
  EXPECT_EQ(book.Open(6, kBob), Admission::kRefused);
  EXPECT_EQ(book.Open(7, kBob), Admission::kNone);  // too many refusals
  int fd = 10;
  for (const uid_t uid : {uid_t{0}, kDaemon}) {
    EXPECT_EQ(book.Open(fd++, uid), Admission::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Admission::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Admission::kNone);
  }
  book.Close(3);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kCat), Admission::kServed);
}

TEST(ConnectionTable, AUserWithMoreThanHalfIsCrowded) {
  ConnectionTable book({.per_user = 4}, kDaemon);
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
