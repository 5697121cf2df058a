#include "renzan/cluster/simulate/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "renzan/base/counted.h"
#include "renzan/base/svg.h"
#include "renzan/cluster/simulate/metrics.h"
#include "renzan/cluster/simulate/report.h"

namespace renzan::cluster::simulate {
namespace {

constexpr int kWidth = 1200, kHeight = 770;
constexpr double kLeft = 70, kRight = 1020;  // of the plots; the legend is to the right
constexpr double kWaitTop = 50, kWaitBottom = 170, kRunTop = 200, kRunBottom = 420;
constexpr double kClassTop = 450, kClassBottom = 590;
constexpr double kJobsTop = 620, kJobsBottom = 735;
constexpr size_t kBins = 475;  // two pixels each
constexpr size_t kClassBins = 95;
constexpr size_t kMostQueues = 9;  // with colours of their own
constexpr size_t kMostJobs = 12;   // with lines of their own
constexpr std::array<const char*, kMostQueues + 1> kColours = {
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee",
    "#aa3377", "#ee8866", "#44bb99", "#99ddff", "#bbbbbb"};

constexpr double kMsPerHour = 3'600'000;

using Bins = std::vector<double>;

class Painter {
 public:
  Painter(const SimulationResult& result, const std::string& title)
      : result_(result),
        title_(title),
        begin_(result.totals.begin),
        span_(std::max<TimeMs>(1, result.totals.end - result.totals.begin)) {
    for (const JobRecord& job : result.jobs) by_id_[job.id] = &job;
    ChooseQueues();
  }

  std::string Draw() {
    svg_.Text(kLeft, 24, "start", title_, 16);
    DrawWaiting();
    DrawRunning();
    DrawWaitingByClass();
    DrawLargestJobs();
    DrawTimeAxis();
    DrawLegend();
    return svg_.Finish();
  }

 private:
  double X(TimeMs time) const {
    return kLeft +
           (kRight - kLeft) * static_cast<double>(time - begin_) / static_cast<double>(span_);
  }

  // The queues with most GPU time get their own colours; the others share the last.
  void ChooseQueues() {
    std::vector<std::pair<double, int>> used(result_.queue_names.size());
    for (size_t queue = 0; queue < used.size(); ++queue)
      used[queue].second = static_cast<int>(queue);
    for (const JobRecord& job : result_.jobs)
      used[job.queue].first -=
          static_cast<double>(job.useful) * static_cast<double>(job.gpus_per_worker);
    std::sort(used.begin(), used.end());
    layer_of_.assign(used.size(), kMostQueues);
    for (size_t place = 0; place < used.size(); ++place) {
      const bool own = place < kMostQueues;
      if (own) layer_of_[used[place].second] = place;
      if (own) layer_names_.push_back(result_.queue_names[used[place].second]);
    }
    if (used.size() > kMostQueues) layer_names_.push_back("other queues");
  }

  // Adds GPUs to the bins that an interval overlaps, in proportion to the overlap.
  void Add(Bins& bins, const Interval& interval, double gpus) const {
    const double scale = static_cast<double>(kBins) / static_cast<double>(span_);
    const double from = static_cast<double>(interval.begin - begin_) * scale;
    const double to = static_cast<double>(interval.end - begin_) * scale;
    for (auto bin = static_cast<size_t>(std::max(0.0, from)); bin < kBins; ++bin) {
      const double left = static_cast<double>(bin);
      if (left >= to) break;
      bins[bin] += gpus * (std::min(to, left + 1) - std::max(from, left));
    }
  }

  double Gpus(const Interval& interval) const {
    return static_cast<double>(by_id_.at(interval.job)->gpus_per_worker * interval.workers);
  }

  // A filled area between two curves, from `bottom` pixels upwards.
  void Area(const Bins& low, const Bins& high, double bottom, double scale, const char* colour) {
    std::vector<SvgPoint> points;
    const double step = (kRight - kLeft) / static_cast<double>(kBins);
    const auto add = [&](double bin, double value) {
      points.push_back({kLeft + bin * step, bottom - value * scale});
    };
    for (size_t bin = 0; bin < kBins; ++bin) {
      add(static_cast<double>(bin), high[bin]);
      add(static_cast<double>(bin) + 1, high[bin]);
    }
    for (size_t bin = kBins; bin-- > 0;) {
      add(static_cast<double>(bin) + 1, low[bin]);
      add(static_cast<double>(bin), low[bin]);
    }
    svg_.Polygon(points, colour);
  }

  void Frame(double top, double bottom, double most, const std::string& label) {
    svg_.Line(kLeft, bottom, kRight, bottom, "#222222", 1);
    svg_.Line(kLeft, top, kLeft, bottom, "#222222", 1);
    svg_.Text(kLeft - 6, top + 4, "end", fmt::format("{:.0f}", most));
    svg_.Text(kLeft - 6, bottom + 4, "end", "0");
    svg_.Text(kLeft + 4, top - 6, "start", label);
  }

  void DrawWaiting() {
    Bins waiting(kBins, 0.0);
    for (const Interval& interval : result_.waits) Add(waiting, interval, Gpus(interval));
    const double most = std::max(1.0, *std::max_element(waiting.begin(), waiting.end()));
    Area(Bins(kBins, 0.0), waiting, kWaitBottom, (kWaitBottom - kWaitTop) / most, "#999999");
    Frame(kWaitTop, kWaitBottom, most, "GPUs requested by pending jobs");
  }

  void DrawRunning() {
    std::vector<Bins> layers(kMostQueues + 1, Bins(kBins, 0.0));
    for (const Interval& interval : result_.runs)
      Add(layers[layer_of_[by_id_.at(interval.job)->queue]], interval, Gpus(interval));
    const double present = result_.totals.present / static_cast<double>(span_);
    double most = std::max(1.0, present);
    Bins low(kBins, 0.0);
    std::vector<Bins> stacked;
    for (const Bins& layer : layers) {
      Bins high = low;
      for (size_t bin = 0; bin < kBins; ++bin) high[bin] += layer[bin];
      stacked.push_back(high);
      low = std::move(high);
    }
    most = std::max(most, *std::max_element(low.begin(), low.end()));
    const double scale = (kRunBottom - kRunTop) / most;
    Bins below(kBins, 0.0);
    for (size_t layer = 0; layer < stacked.size(); ++layer) {
      if (layer < layer_names_.size())
        Area(below, stacked[layer], kRunBottom, scale, kColours[layer]);
      below = stacked[layer];
    }
    const double y = kRunBottom - present * scale;
    svg_.Line(kLeft, y, kRight, y, "#222222", 1);
    svg_.Text(kRight + 6, y + 16, "start", fmt::format("{:.0f} GPUs available on average", present),
              11);
    Frame(kRunTop, kRunBottom, most, "GPUs in use, by queue");
  }

  // Hours of the jobs of each class, by the bin of their submission; negative where there are none.
  Bins MeanWaiting(const SizeRange& range) const {
    Bins sums(kClassBins, 0.0), jobs(kClassBins, 0.0);
    for (const JobRecord& job : result_.jobs) {
      if (!job.end || !range.Contains(job.gpus)) continue;
      const auto bin =
          static_cast<size_t>((job.submitted - begin_) * static_cast<TimeMs>(kClassBins) / span_);
      sums[std::min(bin, kClassBins - 1)] += static_cast<double>(job.waited_ms) / kMsPerHour;
      ++jobs[std::min(bin, kClassBins - 1)];
    }
    for (size_t bin = 0; bin < kClassBins; ++bin)
      sums[bin] = jobs[bin] > 0 ? sums[bin] / jobs[bin] : -1;
    return sums;
  }

  // Jobs wait for seconds or for weeks: a minute is where the scale turns from linear to
  // logarithmic.
  static double Logarithmic(double hours) { return std::log10(1 + hours * 60); }

  void DrawWaitingByClass() {
    std::vector<Bins> classes;
    double most = 1;
    for (const SizeRange& range : kSizeRanges) {
      classes.push_back(MeanWaiting(range));
      most = std::max(most, *std::max_element(classes.back().begin(), classes.back().end()));
    }
    const auto y = [&](double hours) {
      return kClassBottom - (kClassBottom - kClassTop) * Logarithmic(hours) / Logarithmic(most);
    };
    Frame(kClassTop, kClassBottom, most, "hours that jobs waited, mean by GPUs, by submission");
    for (double hours = 0.1; hours < most / 2; hours *= 10) {
      svg_.Line(kLeft, y(hours), kRight, y(hours), "#dddddd", 1);
      svg_.Text(kLeft - 6, y(hours) + 4, "end", fmt::format("{:g}", hours));
    }
    const double step = (kRight - kLeft) / static_cast<double>(kClassBins);
    double legend = kClassTop + 4;
    for (size_t place = 0; place < classes.size(); ++place) {
      const char* colour = kColours[place];
      std::vector<SvgPoint> points;  // of bins in a row that have jobs
      const auto draw = [&] {
        if (points.size() == 1) svg_.Circle(points[0].x, points[0].y, 1.5, colour);
        if (points.size() > 1) svg_.Polyline(points, colour, 1.5);
        points.clear();
      };
      bool any = false;
      for (size_t bin = 0; bin < kClassBins; ++bin) {
        const double mean = classes[place][bin];
        if (mean < 0) {
          draw();
          continue;
        }
        points.push_back({kLeft + (static_cast<double>(bin) + 0.5) * step, y(mean)});
        any = true;
      }
      draw();
      if (!any) continue;
      svg_.Rectangle(kRight + 16, legend - 10, 11, 11, colour);
      svg_.Text(kRight + 32, legend, "start", Counted(kSizeRanges[place].name, "GPU"));
      legend += 16;
    }
  }

  void DrawLargestJobs() {
    std::vector<const JobRecord*> largest;
    for (const JobRecord& job : result_.jobs) largest.push_back(&job);
    const auto larger = [](const JobRecord* a, const JobRecord* b) {
      return std::pair(-a->gpus, a->id) < std::pair(-b->gpus, b->id);
    };
    const size_t shown = std::min(kMostJobs, largest.size());
    std::partial_sort(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(shown),
                      largest.end(), larger);
    std::map<JobId, double> rows;
    const double step = (kJobsBottom - kJobsTop) / static_cast<double>(kMostJobs);
    for (size_t place = 0; place < shown; ++place) {
      const JobRecord& job = *largest[place];
      rows[job.id] = kJobsTop + (static_cast<double>(place) + 0.5) * step;
      svg_.Text(kRight + 6, rows[job.id] + 3, "start",
                fmt::format("job {}: {}, waited {}", job.id, Counted(job.gpus, "GPU"),
                            FormatSeconds(static_cast<double>(job.waited_ms) / 1000)),
                9);
    }
    const auto draw = [&](const std::vector<Interval>& intervals, const char* colour,
                          double width) {
      for (const Interval& interval : intervals)
        if (const auto row = rows.find(interval.job); row != rows.end())
          svg_.Line(X(interval.begin), row->second,
                    std::max(X(interval.end), X(interval.begin) + 1), row->second, colour, width);
    };
    draw(result_.waits, "#cc3311", 2);
    draw(result_.runs, "#228833", 5);
    svg_.Text(kLeft + 4, kJobsTop - 6, "start",
              "the largest jobs: thin while they wait, thick while they run");
    svg_.Line(kLeft, kJobsBottom, kRight, kJobsBottom, "#222222", 1);
  }

  void DrawTimeAxis() {
    for (int tick = 0; tick <= 5; ++tick) {
      const double x = kLeft + (kRight - kLeft) * tick / 5;
      svg_.Line(x, kJobsBottom, x, kJobsBottom + 4, "#222222", 1);
      svg_.Text(x, kJobsBottom + 18, "middle",
                FormatSeconds(static_cast<double>(span_) / 1000 * tick / 5));
    }
  }

  void DrawLegend() {
    double y = kWaitTop + 4;
    for (size_t layer = 0; layer < layer_names_.size(); ++layer, y += 16) {
      svg_.Rectangle(kRight + 16, y - 10, 11, 11, kColours[layer]);
      svg_.Text(kRight + 32, y, "start", layer_names_[layer]);
    }
  }

  const SimulationResult& result_;
  const std::string& title_;
  const TimeMs begin_, span_;
  std::map<JobId, const JobRecord*> by_id_;
  std::vector<size_t> layer_of_;  // of each queue
  std::vector<std::string> layer_names_;
  Svg svg_{kWidth, kHeight};
};

}  // namespace

std::string DrawTimeline(const SimulationResult& result, const std::string& title) {
  return Painter(result, title).Draw();
}

}  // namespace renzan::cluster::simulate
