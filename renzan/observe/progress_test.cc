#include "renzan/observe/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "renzan/base/file/file.h"

namespace renzan {
namespace {

const Progress kSome = {.step = 125,
                        .steps = 1000,
                        .samples_per_second = 57123,
                        .loss = 0.45123,
                        .auc = 0.78014,
                        .measured_at = 125,
                        .eta_seconds = 200};

// What a display prints when `body` updates it.
template <typename Body>
std::string Shown(bool is_terminal, const Body& body) {
  TemporaryDirectory dir;
  const int fd = ::open((dir / "out").c_str(), O_CREAT | O_WRONLY, 0600);
  {
    ProgressDisplay display(fd, is_terminal);
    body(display);
  }
  ::close(fd);
  return ReadFile(dir / "out");
}

TEST(Progress, LineShowsWhatIsKnown) {
  EXPECT_EQ(ProgressLine(kSome),
            "step 125/1000 (12%)  loss 0.4512  AUC 0.7801  57.1k samples/s  ETA 3m20s");
  EXPECT_EQ(ProgressLine({.step = 999, .steps = 1000}), "step 999/1000 (99%)");
  Progress later = kSome;
  later.step = 150;
  EXPECT_EQ(ProgressLine(later), "step 150/1000 (15%)  57.1k samples/s  ETA 3m20s");
  EXPECT_EQ(ProgressLine({.step = 0, .steps = 0}), "step 0/0 (0%)");
}

TEST(Progress, BarFitsTheWidth) {
  EXPECT_EQ(ProgressBar({.step = 5, .steps = 10, .loss = 0.5}, 40),
            " 50% [=======>       ] 5/10  loss 0.5000");
  EXPECT_EQ(ProgressBar({.step = 10, .steps = 10}, 21), "100% [========] 10/10");
  for (int width = 0; width < 200; ++width)
    EXPECT_LE(ProgressBar(kSome, width).size(), static_cast<size_t>(width));
  EXPECT_EQ(ProgressBar(kSome, 30), " 12%  125/1000  loss 0.4512  A");
  Progress later = kSome;
  later.step = 150;
  EXPECT_EQ(ProgressBar(later, 30), " 15%  150/1000  loss 0.4512  A");
}

TEST(Progress, Durations) {
  EXPECT_EQ(SecondsText(0), "0s");
  EXPECT_EQ(SecondsText(59.4), "59s");
  EXPECT_EQ(SecondsText(59.6), "1m00s");
  EXPECT_EQ(SecondsText(3725), "1h02m");
  EXPECT_EQ(SecondsText(183600), "2d03h");
  EXPECT_EQ(SecondsText(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(SecondsText(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(Progress, PrintsPlainLinesPeriodicallyAndTheLastOne) {
  EXPECT_EQ(Shown(false,
                  [](ProgressDisplay& display) {
                    for (int64_t step = 1; step <= 25; ++step)
                      display.Update({.step = step, .steps = 25}, static_cast<double>(step));
                    display.Update({.step = 25, .steps = 25}, 25.5);
                  }),
            "step 1/25 (4%)\nstep 11/25 (44%)\nstep 21/25 (84%)\nstep 25/25 (100%)\n");
}

// One step each second; the loss is measured after every `every` of them.
std::string Measured(int64_t steps, int64_t every) {
  return Shown(false, [&](ProgressDisplay& display) {
    Progress progress{.steps = steps};
    for (progress.step = 1; progress.step <= steps; ++progress.step) {
      if (progress.step > every && progress.step < steps)
        display.Update(progress, static_cast<double>(progress.step));
      if (progress.step % every != 0) continue;
      progress.loss = static_cast<double>(progress.step) / 100;
      progress.measured_at = progress.step;
      display.Update(progress, static_cast<double>(progress.step));
    }
  });
}

TEST(Progress, LinesBetweenMeasurementsRepeatNone) {
  // Every measurement is shown where they are rare ...
  EXPECT_EQ(Measured(50, 25),
            "step 25/50 (50%)  loss 0.2500\nstep 35/50 (70%)\nstep 45/50 (90%)\n"
            "step 50/50 (100%)  loss 0.5000\n");
  // ... also soon after a line without, ...
  EXPECT_EQ(Measured(36, 12),
            "step 12/36 (33%)  loss 0.1200\nstep 22/36 (61%)\nstep 24/36 (66%)  loss 0.2400\n"
            "step 34/36 (94%)\nstep 36/36 (100%)  loss 0.3600\n");
  // ... and only those, ten seconds apart, where they are not.
  EXPECT_EQ(Measured(28, 4),
            "step 4/28 (14%)  loss 0.0400\nstep 16/28 (57%)  loss 0.1600\n"
            "step 28/28 (100%)  loss 0.2800\n");
}

TEST(Progress, OverwritesATerminalLineAndEndsOnANewOne) {
  const std::string bar1 = ProgressBar({.step = 1, .steps = 3}, 79);
  const std::string bar3 = ProgressBar({.step = 3, .steps = 3}, 79);
  EXPECT_EQ(Shown(true,
                  [](ProgressDisplay& display) {
                    display.Update({.step = 1, .steps = 3}, 0);
                    display.Update({.step = 2, .steps = 3}, 0.05);
                    display.Clear();
                    display.Clear();
                    display.Update({.step = 3, .steps = 3}, 0.06);
                  }),
            "\r\033[K" + bar1 + "\r\033[K" + "\r\033[K" + bar3 + "\n");
}

}  // namespace
}  // namespace renzan
