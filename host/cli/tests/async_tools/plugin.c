#include "later.h"

#include <stdlib.h>

#define TOOLS(name) exports_example_later_tools_##name

// The functions return to the host only when they have ended. So they need no callback.
#define WITHOUT_CALLBACK(name) \
  later_callback_code_t TOOLS(name##_callback)(later_event_t *event) { abort(); }

// Waits until a read or write has ended.
static later_waitable_status_t ended(later_waitable_status_t status, uint32_t handle) {
  if (status == LATER_WAITABLE_STATUS_BLOCKED) {
    later_waitable_set_t set = later_waitable_set_new();
    later_event_t event;
    later_waitable_join(handle, set);
    later_waitable_set_wait(set, &event);
    later_waitable_join(handle, 0);
    later_waitable_set_drop(set);
    status = event.code;
  }
  return status;
}

later_callback_code_t TOOLS(double_later)(uint32_t value) {
  TOOLS(double_later_return)(value * 2);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(double_later)

later_callback_code_t TOOLS(check)(later_string_t *name) {
  TOOLS(result_string_string_t) result = {.is_err = name->len == 0};
  later_string_set(result.is_err ? &result.val.err : &result.val.ok,
                   result.is_err ? "the name is empty" : "Ada is a name");
  later_string_free(name);
  TOOLS(check_return)(result);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(check)

later_callback_code_t TOOLS(count)(uint32_t to) {
  TOOLS(stream_u32_writer_t) writer;
  TOOLS(count_return)(TOOLS(stream_u32_new)(&writer));
  for (uint32_t number = 1; number <= to; number++) {
    later_waitable_status_t status = ended(TOOLS(stream_u32_write)(writer, &number, 1), writer);
    if (LATER_WAITABLE_STATE(status) == LATER_WAITABLE_DROPPED) break;
  }
  TOOLS(stream_u32_drop_writable)(writer);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(count)

later_callback_code_t TOOLS(speak)(later_string_t *text) {
  TOOLS(stream_u8_writer_t) writer;
  TOOLS(speak_return)(TOOLS(stream_u8_new)(&writer));
  for (size_t written = 0; written < text->len;) {
    later_waitable_status_t status =
        ended(TOOLS(stream_u8_write)(writer, text->ptr + written, text->len - written), writer);
    written += LATER_WAITABLE_COUNT(status);
    if (LATER_WAITABLE_STATE(status) == LATER_WAITABLE_DROPPED) break;
  }
  TOOLS(stream_u8_drop_writable)(writer);
  later_string_free(text);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(speak)

later_callback_code_t TOOLS(promise)(later_string_t *value) {
  TOOLS(future_string_writer_t) writer;
  TOOLS(promise_return)(TOOLS(future_string_new)(&writer));
  ended(TOOLS(future_string_write)(writer, value), writer);
  TOOLS(future_string_drop_writable)(writer);
  later_string_free(value);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(promise)

later_callback_code_t TOOLS(sum)(TOOLS(stream_u32_t) numbers) {
  uint32_t items[16], sum = 0;
  later_waitable_status_t status;
  do {
    status = ended(TOOLS(stream_u32_read)(numbers, items, 16), numbers);
    for (uint32_t i = 0; i < LATER_WAITABLE_COUNT(status); i++) sum += items[i];
  } while (LATER_WAITABLE_STATE(status) == LATER_WAITABLE_COMPLETED);
  TOOLS(stream_u32_drop_readable)(numbers);
  TOOLS(sum_return)(sum);
  return LATER_CALLBACK_CODE_EXIT;
}
WITHOUT_CALLBACK(sum)

uint32_t TOOLS(plain)(uint32_t value) { return value + 1; }
