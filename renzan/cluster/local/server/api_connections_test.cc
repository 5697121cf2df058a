#include "renzan/cluster/local/server/api_connections.h"

#include <gtest/gtest.h>

namespace renzan::cluster::local {
namespace {

using Admission = ConnectionTable::Admission;

constexpr uid_t kDaemonUid = 500, kAnnUid = 1000, kBobUid = 1001, kCatUid = 1002;
constexpr ConnectionLimits kFew{
    .per_user = 2, .all_users = 3, .per_operator = 2, .refusals = 3, .refusals_per_user = 2};

TEST(ConnectionTable, LimitsEachUser) {
  ConnectionTable book(kFew, kDaemonUid);
  EXPECT_EQ(book.Open(1, kAnnUid), Admission::kServed);
  EXPECT_EQ(book.Open(2, kAnnUid), Admission::kServed);
  EXPECT_EQ(book.Open(3, kAnnUid), Admission::kRefused);
  EXPECT_EQ(book.Open(4, kAnnUid), Admission::kRefused);
  EXPECT_EQ(book.Open(5, kAnnUid), Admission::kNone);  // not counted
  EXPECT_EQ(book.AdmissionOf(2), Admission::kServed);
  EXPECT_EQ(book.AdmissionOf(3), Admission::kRefused);
  EXPECT_EQ(book.LimitFor(3), 2);
  EXPECT_EQ(book.Open(6, kBobUid), Admission::kServed);

  book.Close(5);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kAnnUid), Admission::kRefused);
  book.Close(1);
  EXPECT_EQ(book.Open(1, kAnnUid), Admission::kServed);
}

TEST(ConnectionTable, ReservesConnectionsForRootAndTheOperator) {
  ConnectionTable book(kFew, kDaemonUid);
  book.Open(1, kAnnUid);
  book.Open(2, kAnnUid);
  book.Open(3, kBobUid);
  EXPECT_EQ(book.Open(4, kCatUid), Admission::kRefused);
  EXPECT_EQ(book.Open(5, kCatUid), Admission::kRefused);
  EXPECT_EQ(book.Open(6, kBobUid), Admission::kRefused);
  EXPECT_EQ(book.Open(7, kBobUid), Admission::kNone);  // too many refusals
  int fd = 10;
  for (const uid_t uid : {uid_t{0}, kDaemonUid}) {
    EXPECT_EQ(book.Open(fd++, uid), Admission::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Admission::kServed);
    EXPECT_EQ(book.Open(fd++, uid), Admission::kNone);
  }
  book.Close(3);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kCatUid), Admission::kServed);
}

TEST(ConnectionTable, AUserWithMoreThanHalfIsCrowded) {
  ConnectionTable book({.per_user = 4}, kDaemonUid);
  book.Open(1, kAnnUid);
  book.Open(2, kAnnUid);
  EXPECT_FALSE(book.IsCrowded(1));
  book.Open(3, kAnnUid);
  EXPECT_TRUE(book.IsCrowded(1));
  book.Close(3);
  EXPECT_FALSE(book.IsCrowded(1));
}

}  // namespace
}  // namespace renzan::cluster::local
