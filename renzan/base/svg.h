#pragma once

// A picture in SVG: elements in the order of the calls. Coordinates are pixels from the top left.

#include <span>
#include <string>

namespace renzan {

struct SvgPoint {
  double x, y;
};

class Svg {
 public:
  Svg(int width, int height);

  // Colours are as in SVG: "#4477aa". `anchor`: "start", "middle" or "end" is at (x, y).
  void Text(double x, double y, const char* anchor, const std::string& text, int size = 12);
  void Line(double x1, double y1, double x2, double y2, const char* colour, double width);
  void Polyline(std::span<const SvgPoint> points, const char* colour, double width);
  void Polygon(std::span<const SvgPoint> points, const char* colour);
  void Rectangle(double x, double y, double width, double height, const char* colour);
  void Circle(double x, double y, double radius, const char* colour);

  // The whole file.
  std::string Finish() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace renzan
