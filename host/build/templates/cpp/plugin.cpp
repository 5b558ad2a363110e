// The tools of `wit/plugin.wit`.

#include <numbers>
#include <string>

#include "plugin_cpp.h"

namespace exports::example::{{snake}}::tools {

wit::string Echo(wit::string text) { return text; }

int32_t Add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

// An `std::unexpected` is the error of the `result`.
std::expected<wit::string, wit::string> Greet(Person person) {
  if (person.name.empty()) return std::unexpected(wit::string::from_view("the name is empty"));
  std::string text = "Hello, " + person.name.to_string();
  if (person.age) text += " (" + std::to_string(*person.age) + ")";
  return wit::string::from_view(text + "!");
}

static double Area(const Shape &shape) {
  if (auto circle = std::get_if<Shape::Circle>(&shape.variants)) return std::numbers::pi * circle->value * circle->value;
  if (auto square = std::get_if<Shape::Square>(&shape.variants)) return square->value * square->value;
  return 0;
}

wit::vector<double> Areas(wit::vector<Shape> shapes) {
  auto areas = wit::vector<double>::allocate(shapes.size());
  for (size_t i = 0; i < shapes.size(); i++) areas.initialize(i, Area(shapes[i]));
  return areas;
}

Counter::Owned StartCounter(uint32_t value) { return Counter::Owned(new Counter(value)); }

uint32_t Counter::Increment(uint32_t by) { return value += by; }

}
