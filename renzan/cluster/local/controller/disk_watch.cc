#include "renzan/cluster/local/controller/disk_watch.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/log.h"
#include "renzan/cluster/spec/amounts.h"

namespace renzan::cluster::local {
namespace {

constexpr TimeMs kBetweenLooksMs = 10'000, kWhileNearlyFullMs = 1'000;
// So that measuring keeps neither the daemon nor the disk busy.
constexpr int kFilesAtOnce = 1000;
constexpr TimeMs kBetweenStepsMs = 50, kBetweenMeasurementsMs = 60'000;
constexpr size_t kListed = 3;
constexpr int64_t kWorthMentioning = 1 << 20;
// A job of one worker makes about a dozen.
constexpr int64_t kKeepFiles = 1000;

std::string BytesText(int64_t bytes) { return spec::MebibytesText(bytes >> 20); }

}  // namespace

std::optional<DiskRoom> RoomOn(const std::string& directory) {
  struct statvfs about {};
  if (::statvfs(directory.c_str(), &about) != 0 || about.f_blocks == 0) return std::nullopt;
  DiskRoom room{.bytes = static_cast<int64_t>(about.f_bavail * about.f_frsize)};
  if (about.f_files > 0) room.files = static_cast<int64_t>(about.f_favail);
  return room;
}

DiskWatch::DiskWatch(std::string state_dir, int64_t keep_free, const JobDirectories& directories,
                     std::function<std::optional<DiskRoom>(const std::string&)> room)
    : state_dir_(std::move(state_dir)),
      keep_free_(keep_free),
      directories_(directories),
      room_of_(std::move(room)) {}

void DiskWatch::Look(TimeMs now, bool at_once) {
  if (keep_free_ == 0) return;
  // Also after the clock was set back.
  if (at_once || now < looked_ || now >= looked_ + kWhileNearlyFullMs) {
    looked_ = now;
    const std::optional<DiskRoom> room = room_of_(state_dir_);
    if (!room) return;
    room_ = *room;
    const bool before = std::exchange(
        nearly_full_, room_.bytes < keep_free_ || room_.files.value_or(kKeepFiles) < kKeepFiles);
    if (nearly_full_ && !before) {
      LogWarning("{}", Trouble());
      measure_at_ = now;
    } else if (before && !nearly_full_) {
      LogInfo("the disk of {} has room again: {} free", state_dir_, BytesText(room_.bytes));
      to_measure_.clear();
      measuring_.reset();
      largest_.clear();
    }
  }
  if (nearly_full_ && now >= measure_at_) Measure(now);
}

TimeMs DiskWatch::NextLook(bool active) const {
  if (keep_free_ == 0) return kNever;
  if (nearly_full_) return std::min(looked_ + kWhileNearlyFullMs, measure_at_);
  return active ? looked_ + kBetweenLooksMs : kNever;
}

void DiskWatch::StartMeasuring() {
  measured_.clear();
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directories_.root(), error)) {
    const std::string name = entry.path().filename().string();
    JobId job = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), job).ptr ==
        name.data() + name.size())
      to_measure_.push_back(job);
  }
}

// One step.
void DiskWatch::Measure(TimeMs now) {
  measure_at_ = now + kBetweenStepsMs;
  if (to_measure_.empty()) StartMeasuring();
  for (int files = kFilesAtOnce; files > 0 && !to_measure_.empty(); files -= kFilesAtOnce / 10) {
    const JobId job = to_measure_.back();
    if (!measuring_) measuring_.emplace(directories_.Of(job));
    if (!measuring_->Advance(kFilesAtOnce / 10)) continue;
    if (measuring_->bytes() >= kWorthMentioning) measured_[job] = measuring_->bytes();
    measuring_.reset();
    to_measure_.pop_back();
  }
  if (!to_measure_.empty()) return;
  measure_at_ = now + kBetweenMeasurementsMs;
  const bool first = largest_.empty();
  largest_.assign(measured_.begin(), measured_.end());
  const size_t listed = std::min(kListed, largest_.size());
  std::partial_sort(largest_.begin(), largest_.begin() + static_cast<long>(listed), largest_.end(),
                    [](const auto& a, const auto& b) { return a.second > b.second; });
  largest_.resize(listed);
  if (first && !largest_.empty()) LogWarning("on the disk of {}, {}", state_dir_, Largest());
}

// "job 3 uses 1.5GiB, job 1 20MiB"
std::string DiskWatch::Largest() const {
  std::string text;
  for (const auto& [job, bytes] : largest_)
    text += text.empty() ? fmt::format("job {} uses {}", job, BytesText(bytes))
                         : fmt::format(", job {} {}", job, BytesText(bytes));
  return text;
}

std::string DiskWatch::Lack() const {
  if (room_.bytes >= keep_free_)
    return fmt::format("the disk of {} has room for only {}", state_dir_,
                       Counted(room_.files.value_or(0), "more file"));
  return fmt::format("the disk of {} has {} free, less than the {} of disk.keep_free", state_dir_,
                     BytesText(room_.bytes), BytesText(keep_free_));
}

std::string DiskWatch::Trouble() const {
  if (!nearly_full_) return "";
  return fmt::format(
      "{}: no job starts or is accepted until there is room{}{}. Cancel a job that fills it "
      "(`renzan job cancel ID`), or remove what ended jobs left in {}",
      Lack(), largest_.empty() ? "" : "; ", Largest(), directories_.root());
}

void DiskWatch::RequireRoom() const {
  if (nearly_full_) Fail(ErrorCode::kIo, "{}", Trouble());
}

}  // namespace renzan::cluster::local
