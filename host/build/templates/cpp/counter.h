// The class of the resource `counter`. It is yours: a build does not overwrite it. After a change of the resource in the WIT,
// the expected declaration is in `bindings/exports-example-{{snake}}-tools-Counter.h.template`.
#pragma once

#include <cstdint>

#include "wit.h"

namespace exports::example::{{snake}}::tools {

class Counter : public wit::ResourceExportBase<Counter> {
public:
  explicit Counter(uint32_t value) : value(value) {}

  /// Add to the counter, and return its new value.
  uint32_t Increment(uint32_t by);

  // The bindings define these three.
  static int32_t ResourceNew(Counter *self);
  static Counter *ResourceRep(int32_t id);
  static void ResourceDrop(int32_t id);

  static void Dtor(Counter *self) { delete self; }

private:
  uint32_t value;
};

} // namespace exports::example::{{snake}}::tools
