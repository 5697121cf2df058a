#include "renzan/base/svg.h"

#include <fmt/format.h>

namespace renzan {
namespace {

std::string Escape(const std::string& raw) {
  std::string escaped;
  for (const char c : raw) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else
      escaped += c;
  }
  return escaped;
}

std::string Points(std::span<const SvgPoint> points) {
  std::string text;
  for (const auto [x, y] : points) text += fmt::format("{:.1f},{:.1f} ", x, y);
  return text;
}

}  // namespace

Svg::Svg(int width, int height)
    : text_(fmt::format(
          R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
          R"(font-family="sans-serif" font-size="12" fill="#222222">)"
          "\n",
          width, height)) {
  Rectangle(0, 0, width, height, "#ffffff");
}

void Svg::Text(double x, double y, const char* anchor, const std::string& text, int size) {
  text_ += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" font-size="{}">{}</text>)"
                       "\n",
                       x, y, anchor, size, Escape(text));
}

void Svg::Line(double x1, double y1, double x2, double y2, const char* colour, double width) {
  text_ += fmt::format(
      R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}" stroke-width="{}"/>)"
      "\n",
      x1, y1, x2, y2, colour, width);
}

void Svg::Polyline(std::span<const SvgPoint> points, const char* colour, double width) {
  text_ += fmt::format(R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="{}"/>)"
                       "\n",
                       Points(points), colour, width);
}

void Svg::Polygon(std::span<const SvgPoint> points, const char* colour) {
  text_ += fmt::format(R"(<polygon points="{}" fill="{}"/>)"
                       "\n",
                       Points(points), colour);
}

void Svg::Rectangle(double x, double y, double width, double height, const char* colour) {
  text_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)"
                       "\n",
                       x, y, width, height, colour);
}

void Svg::Circle(double x, double y, double radius, const char* colour) {
  text_ += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.1f}" fill="{}"/>)"
                       "\n",
                       x, y, radius, colour);
}

}  // namespace renzan
