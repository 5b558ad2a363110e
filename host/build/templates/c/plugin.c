// The tools of `wit/plugin.wit`.

#include <stdio.h>
#include <stdlib.h>

#include "plugin.h"

#define PI 3.14159265358979323846

// Arguments belong to the function, which frees them. Results belong to the caller.

void exports_example_{{snake}}_tools_echo(plugin_string_t *text, plugin_string_t *ret) {
  *ret = *text;
}

int32_t exports_example_{{snake}}_tools_add(int32_t a, int32_t b) {
  return (int32_t)((uint32_t)a + (uint32_t)b);
}

// Returns true and sets `ret`, or returns false and sets `err`.
bool exports_example_{{snake}}_tools_greet(exports_example_{{snake}}_tools_person_t *person, plugin_string_t *ret,
                                     plugin_string_t *err) {
  if (person->name.len == 0) {
    plugin_string_dup(err, "the name is empty");
    exports_example_{{snake}}_tools_person_free(person);
    return false;
  }
  size_t size = person->name.len + 32;
  char *text = malloc(size);
  if (text == NULL) abort();
  int name_len = (int)person->name.len;
  const char *name = (const char *)person->name.ptr;
  if (person->age.is_some) {
    snprintf(text, size, "Hello, %.*s (%u)!", name_len, name, (unsigned)person->age.val);
  } else {
    snprintf(text, size, "Hello, %.*s!", name_len, name);
  }
  plugin_string_dup(ret, text);
  free(text);
  exports_example_{{snake}}_tools_person_free(person);
  return true;
}

void exports_example_{{snake}}_tools_areas(exports_example_{{snake}}_tools_list_shape_t *shapes, plugin_list_f64_t *ret) {
  ret->len = shapes->len;
  ret->ptr = NULL;
  if (shapes->len > 0) {
    ret->ptr = malloc(shapes->len * sizeof(double));
    if (ret->ptr == NULL) abort();
  }
  for (size_t i = 0; i < shapes->len; i++) {
    exports_example_{{snake}}_tools_shape_t *shape = &shapes->ptr[i];
    switch (shape->tag) {
      case EXPORTS_EXAMPLE_{{SCREAMING}}_TOOLS_SHAPE_CIRCLE:
        ret->ptr[i] = PI * shape->val.circle * shape->val.circle;
        break;
      case EXPORTS_EXAMPLE_{{SCREAMING}}_TOOLS_SHAPE_SQUARE:
        ret->ptr[i] = shape->val.square * shape->val.square;
        break;
      default:
        ret->ptr[i] = 0;
    }
  }
  exports_example_{{snake}}_tools_list_shape_free(shapes);
}

struct exports_example_{{snake}}_tools_counter_t {
  uint32_t value;
};

exports_example_{{snake}}_tools_own_counter_t exports_example_{{snake}}_tools_start_counter(uint32_t value) {
  exports_example_{{snake}}_tools_counter_t *counter = malloc(sizeof(*counter));
  if (counter == NULL) abort();
  counter->value = value;
  return exports_example_{{snake}}_tools_counter_new(counter);
}

uint32_t exports_example_{{snake}}_tools_method_counter_increment(exports_example_{{snake}}_tools_counter_t *self, uint32_t by) {
  self->value += by;
  return self->value;
}

void exports_example_{{snake}}_tools_counter_destructor(exports_example_{{snake}}_tools_counter_t *self) {
  free(self);
}
