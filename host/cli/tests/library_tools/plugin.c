#include <stdlib.h>
#include <string.h>
#include "plugin.h"

typedef acme_library_types_book_t book_t;
typedef acme_library_types_shelf_error_t error_t_;

struct exports_acme_library_catalog_shelf_t {
  plugin_string_t name;
  uint32_t capacity;
  size_t len;
  book_t *books;
};
typedef struct exports_acme_library_catalog_shelf_t shelf_t;

static plugin_string_t copy(const plugin_string_t *s) {
  plugin_string_t out;
  plugin_string_dup_n(&out, (const char *)s->ptr, s->len);
  return out;
}

static book_t copy_book(const book_t *b) {
  book_t out = *b;
  out.title = copy(&b->title);
  out.authors.ptr = malloc(b->authors.len * sizeof(plugin_string_t));
  for (size_t i = 0; i < b->authors.len; i++) out.authors.ptr[i] = copy(&b->authors.ptr[i]);
  return out;
}

static shelf_t *make(plugin_string_t name, uint32_t capacity) {
  shelf_t *s = calloc(1, sizeof *s);
  s->name = name;
  s->capacity = capacity;
  return s;
}

exports_acme_library_catalog_own_shelf_t exports_acme_library_catalog_constructor_shelf(plugin_string_t *name, uint32_t capacity) {
  return exports_acme_library_catalog_shelf_new(make(*name, capacity));
}
void exports_acme_library_catalog_shelf_destructor(shelf_t *s) {
  for (size_t i = 0; i < s->len; i++) acme_library_types_book_free(&s->books[i]);
  free(s->books);
  plugin_string_free(&s->name);
  free(s);
}
void exports_acme_library_catalog_method_shelf_id(shelf_t *self, plugin_string_t *ret) { *ret = copy(&self->name); }
void exports_acme_library_catalog_method_shelf_describe(shelf_t *self, exports_acme_library_catalog_summary_t *ret) {
  ret->name = copy(&self->name);
  ret->count = self->len;
  ret->titles.len = self->len;
  ret->titles.ptr = malloc(self->len * sizeof(plugin_string_t));
  for (size_t i = 0; i < self->len; i++) ret->titles.ptr[i] = copy(&self->books[i].title);
}
static void append(shelf_t *s, book_t b) {
  s->books = realloc(s->books, (s->len + 1) * sizeof(book_t));
  s->books[s->len++] = b;
}
bool exports_acme_library_catalog_method_shelf_put(shelf_t *self, book_t *book, uint32_t *ret, error_t_ *err) {
  if (self->len >= self->capacity) {
    acme_library_types_book_free(book);
    err->tag = ACME_LIBRARY_TYPES_SHELF_ERROR_FULL;
    err->val.full = self->capacity;
    return false;
  }
  append(self, *book);
  *ret = self->len;
  return true;
}
static bool same(plugin_string_t *a, plugin_string_t *b) { return a->len == b->len && !memcmp(a->ptr, b->ptr, a->len); }
static bool missing(plugin_string_t *name, error_t_ *err) {
  err->tag = ACME_LIBRARY_TYPES_SHELF_ERROR_NOT_FOUND;
  err->val.not_found = *name;
  return false;
}
bool exports_acme_library_catalog_method_shelf_take(shelf_t *self, plugin_string_t *title, book_t *ret, error_t_ *err) {
  for (size_t i = 0; i < self->len; i++) {
    if (same(&self->books[i].title, title)) {
      *ret = self->books[i];
      memmove(&self->books[i], &self->books[i + 1], (self->len - i - 1) * sizeof(book_t));
      self->len--;
      plugin_string_free(title);
      return true;
    }
  }
  return missing(title, err);
}
void exports_acme_library_catalog_method_shelf_books(shelf_t *self, acme_library_types_genre_t *genre, exports_acme_library_catalog_list_book_t *ret) {
  ret->ptr = malloc(self->len * sizeof(book_t));
  ret->len = 0;
  for (size_t i = 0; i < self->len; i++)
    if (!genre || *genre == self->books[i].type) ret->ptr[ret->len++] = copy_book(&self->books[i]);
}
void exports_acme_library_catalog_static_shelf_close(exports_acme_library_catalog_own_shelf_t shelf, plugin_list_string_t *ret) {
  exports_acme_library_catalog_summary_t summary;
  exports_acme_library_catalog_method_shelf_describe(exports_acme_library_catalog_shelf_rep(shelf), &summary);
  exports_acme_library_catalog_shelf_drop_own(shelf);
  plugin_string_free(&summary.name);
  *ret = summary.titles;
}
bool exports_acme_library_catalog_open_shelf(plugin_string_t *name, exports_acme_library_catalog_own_shelf_t *ret, error_t_ *err) {
  if (name->len != 1 || (name->ptr[0] != 'a' && name->ptr[0] != 'b')) return missing(name, err);
  *ret = exports_acme_library_catalog_shelf_new(make(*name, 2));
  return true;
}
void exports_acme_library_catalog_open_shelves(plugin_list_string_t *names, exports_acme_library_catalog_list_own_shelf_t *ret) {
  ret->len = names->len;
  ret->ptr = malloc(names->len * sizeof *ret->ptr);
  for (size_t i = 0; i < names->len; i++) ret->ptr[i] = exports_acme_library_catalog_shelf_new(make(copy(&names->ptr[i]), 2));
  plugin_list_string_free(names);
}
uint64_t exports_acme_library_catalog_checksum(plugin_list_u8_t *data) {
  uint64_t sum = 0;
  for (size_t i = 0; i < data->len; i++) sum += data->ptr[i];
  plugin_list_u8_free(data);
  return sum;
}
bool exports_acme_library_catalog_longest(plugin_list_string_t *words, plugin_string_t *ret) {
  plugin_string_t *best = NULL;
  for (size_t i = 0; i < words->len; i++)
    if (!best || words->ptr[i].len > best->len) best = &words->ptr[i];
  if (best) *ret = copy(best);
  bool found = best != NULL;
  plugin_list_string_free(words);
  return found;
}
bool exports_acme_library_catalog_parse_book(plugin_string_t *line, book_t *ret, plugin_string_t *err) {
  for (size_t i = 0; i + 4 <= line->len; i++) {
    if (memcmp(line->ptr + i, " by ", 4)) continue;
    memset(ret, 0, sizeof *ret);
    plugin_string_dup_n(&ret->title, (char *)line->ptr, i);
    ret->authors.len = 1;
    ret->authors.ptr = malloc(sizeof(plugin_string_t));
    plugin_string_dup_n(ret->authors.ptr, (char *)line->ptr + i + 4, line->len - i - 4);
    ret->marks = ACME_LIBRARY_TYPES_MARKS_NEW_ARRIVAL;
    ret->position.f0 = 1;
    ret->position.f1 = 0.5f;
    plugin_string_free(line);
    return true;
  }
  plugin_string_free(line);
  plugin_string_dup(err, "there is no ` by `");
  return false;
}
bool exports_acme_library_catalog_fail(error_t_ *err) {
  err->tag = ACME_LIBRARY_TYPES_SHELF_ERROR_CLOSED;
  return false;
}
