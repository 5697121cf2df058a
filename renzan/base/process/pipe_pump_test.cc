#include "renzan/base/process/pipe_pump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace renzan {
namespace {

TEST(PipePump, HandsEverythingOnInOrder) {
  std::string first, second;
  PipePump pump;
  Descriptor to_first = pump.Add([&](std::string_view piece) { first += piece; });
  Descriptor to_second = pump.Add([&](std::string_view piece) { second += piece; });
  pump.Start();
  const std::string text(300'000, 'x');  // more than a pipe holds
  EXPECT_EQ(write(to_second.get(), "short", 5), 5);
  EXPECT_EQ(write(to_first.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  to_second.Close();
  EXPECT_EQ(write(to_first.get(), "!", 1), 1);
  to_first.Close();
  pump.Finish();
  EXPECT_TRUE(first == text + "!");
  EXPECT_EQ(second, "short");
}

// A process that could not be killed has it open.
TEST(PipePump, FinishesThoughAWriteEndIsOpen) {
  std::string text;
  PipePump pump;
  const Descriptor open = pump.Add([&](std::string_view piece) { text += piece; });
  pump.Start();
  EXPECT_EQ(write(open.get(), "last words", 10), 10);
  pump.Finish();
  EXPECT_EQ(text, "last words");
}

}  // namespace
}  // namespace renzan
