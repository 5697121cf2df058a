#include "renzan/cluster/local/server/api_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

TEST(ConnectionTable, CountsAConnectionForWhomItTurnsOutToBe) {
  constexpr uid_t kAnybody = ConnectionTable::kAnybody;
  ConnectionTable book(kFew, kDaemonUid);
  for (int fd = 1; fd <= 2; ++fd) {
    EXPECT_EQ(book.Open(fd, kAnybody), Admission::kServed);
    EXPECT_EQ(book.Identify(fd, kAnnUid), Admission::kServed);
    EXPECT_EQ(book.Identify(fd, kAnnUid), Admission::kServed) << "with its next request";
  }
  EXPECT_EQ(book.Open(3, kAnnUid), Admission::kRefused) << "over the socket";
  EXPECT_EQ(book.Open(4, kAnybody), Admission::kServed) << "those two no longer count";
  EXPECT_EQ(book.Identify(4, kAnnUid), Admission::kRefused);
  EXPECT_EQ(book.AdmissionOf(4), Admission::kRefused);
  EXPECT_EQ(book.Open(5, kAnybody), Admission::kServed);
  EXPECT_EQ(book.Identify(5, kBobUid), Admission::kServed);
  book.Close(1);
  book.Close(3);
  book.Close(4);
  EXPECT_EQ(book.Open(4, kAnybody), Admission::kServed);
  EXPECT_EQ(book.Identify(4, kAnnUid), Admission::kServed);
  EXPECT_EQ(book.Identify(99, kAnnUid), Admission::kNone);
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

// Two ends of a connection.
struct Pair {
  Pair() { ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends); }
  ~Pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int server() const { return ends[0]; }
  bool WasShutDown() const {
    char byte;
    return ::recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0;
  }
  int ends[2];
};

TEST(ConnectionTable, TheOldestOfAnybodysWithoutARequestGivesWay) {
  ConnectionTable book(kFew, kDaemonUid);
  const Pair asks, silent, late, one_more;
  const ConnectionTable::Time begin{};
  using std::chrono::seconds;
  constexpr uid_t kAnybody = ConnectionTable::kAnybody;
  EXPECT_EQ(book.Open(asks.server(), kAnybody, begin), Admission::kServed);
  book.Asked(asks.server());
  EXPECT_EQ(book.Open(silent.server(), kAnybody, begin + seconds(1)), Admission::kServed);
  EXPECT_EQ(book.Open(late.server(), kAnybody, begin + seconds(2)), Admission::kServed);
  EXPECT_TRUE(silent.WasShutDown());
  EXPECT_FALSE(asks.WasShutDown());
  EXPECT_FALSE(late.WasShutDown());
  EXPECT_EQ(book.AdmissionOf(silent.server()), Admission::kNone);
  book.Close(silent.server());  // it does not count twice
  book.Asked(late.server());
  EXPECT_EQ(book.Open(one_more.server(), kAnybody, begin + seconds(3)), Admission::kRefused);
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
