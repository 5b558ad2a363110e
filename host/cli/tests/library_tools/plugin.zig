const std = @import("std");
const wit = @import("bindings/plugin.zig");
const allocator = std.heap.c_allocator;

const Str = wit.plugin_string_t;
const Book = wit.acme_library_types_book_t;
const Err = wit.acme_library_types_shelf_error_t;
const Own = wit.exports_acme_library_catalog_own_shelf_t;

fn list(comptime List: type, items: anytype) List {
    return .{ .ptr = if (items.len == 0) null else items.ptr, .len = items.len };
}

fn slice(s: Str) []const u8 {
    return s.ptr[0..s.len];
}

fn copy(bytes: []const u8) Str {
    const c = allocator.dupe(u8, bytes) catch @panic("memory");
    return list(Str, c);
}

fn copyBook(b: Book) Book {
    var out = b;
    out.title = copy(slice(b.title));
    const authors = allocator.alloc(Str, b.authors.len) catch @panic("memory");
    for (authors, 0..) |*a, i| a.* = copy(slice(b.authors.ptr[i]));
    out.authors = list(wit.plugin_list_string_t, authors);
    return out;
}

const Shelf = struct {
    name: Str,
    capacity: u32,
    books: std.ArrayList(Book) = .empty,
};

fn make(name: Str, capacity: u32) Own {
    const s = allocator.create(Shelf) catch @panic("memory");
    s.* = .{ .name = name, .capacity = capacity };
    return wit.exports_acme_library_catalog_shelf_new(@ptrCast(s));
}

fn titles(self: *Shelf) wit.plugin_list_string_t {
    const all = allocator.alloc(Str, self.books.items.len) catch @panic("memory");
    for (all, self.books.items) |*t, b| t.* = copy(slice(b.title));
    return list(wit.plugin_list_string_t, all);
}

export fn exports_acme_library_catalog_constructor_shelf(name: *Str, capacity: u32) Own {
    return make(name.*, capacity);
}

export fn exports_acme_library_catalog_shelf_destructor(self: *Shelf) void {
    for (self.books.items) |*b| wit.acme_library_types_book_free(b);
    self.books.deinit(allocator);
    wit.plugin_string_free(&self.name);
    allocator.destroy(self);
}

export fn exports_acme_library_catalog_method_shelf_id(self: *Shelf, ret: *Str) void {
    ret.* = copy(slice(self.name));
}

export fn exports_acme_library_catalog_method_shelf_describe(self: *Shelf, ret: *wit.exports_acme_library_catalog_summary_t) void {
    ret.* = .{ .name = copy(slice(self.name)), .count = @intCast(self.books.items.len), .titles = titles(self) };
}

export fn exports_acme_library_catalog_method_shelf_put(self: *Shelf, book: *Book, ret: *u32, err: *Err) bool {
    if (self.books.items.len >= self.capacity) {
        wit.acme_library_types_book_free(book);
        err.tag = wit.ACME_LIBRARY_TYPES_SHELF_ERROR_FULL;
        err.val.full = self.capacity;
        return false;
    }
    self.books.append(allocator, book.*) catch @panic("memory");
    ret.* = @intCast(self.books.items.len);
    return true;
}

fn missing(name: Str, err: *Err) bool {
    err.tag = wit.ACME_LIBRARY_TYPES_SHELF_ERROR_NOT_FOUND;
    err.val.not_found = name;
    return false;
}

export fn exports_acme_library_catalog_method_shelf_take(self: *Shelf, title: *Str, ret: *Book, err: *Err) bool {
    for (self.books.items, 0..) |b, i| {
        if (std.mem.eql(u8, slice(b.title), slice(title.*))) {
            ret.* = self.books.orderedRemove(i);
            wit.plugin_string_free(title);
            return true;
        }
    }
    return missing(title.*, err);
}

export fn exports_acme_library_catalog_method_shelf_books(self: *Shelf, genre: ?*u8, ret: *wit.exports_acme_library_catalog_list_book_t) void {
    var found: std.ArrayList(Book) = .empty;
    for (self.books.items) |b| {
        if (genre == null or genre.?.* == b.type) found.append(allocator, copyBook(b)) catch @panic("memory");
    }
    const all = found.toOwnedSlice(allocator) catch @panic("memory");
    ret.* = list(wit.exports_acme_library_catalog_list_book_t, all);
}

export fn exports_acme_library_catalog_static_shelf_close(shelf: Own, ret: *wit.plugin_list_string_t) void {
    const self: *Shelf = @ptrCast(@alignCast(wit.exports_acme_library_catalog_shelf_rep(shelf)));
    ret.* = titles(self);
    wit.exports_acme_library_catalog_shelf_drop_own(shelf);
}

export fn exports_acme_library_catalog_open_shelf(name: *Str, ret: *Own, err: *Err) bool {
    if (!std.mem.eql(u8, slice(name.*), "a") and !std.mem.eql(u8, slice(name.*), "b")) return missing(name.*, err);
    ret.* = make(name.*, 2);
    return true;
}

export fn exports_acme_library_catalog_open_shelves(names: *wit.plugin_list_string_t, ret: *wit.exports_acme_library_catalog_list_own_shelf_t) void {
    defer wit.plugin_list_string_free(names);
    const all = allocator.alloc(Own, names.len) catch @panic("memory");
    for (all, 0..) |*o, i| o.* = make(copy(slice(names.ptr[i])), 2);
    ret.* = list(wit.exports_acme_library_catalog_list_own_shelf_t, all);
}

export fn exports_acme_library_catalog_checksum(data: *wit.plugin_list_u8_t) u64 {
    defer wit.plugin_list_u8_free(data);
    var sum: u64 = 0;
    for (data.ptr[0..data.len]) |b| sum += b;
    return sum;
}

export fn exports_acme_library_catalog_longest(words: *wit.plugin_list_string_t, ret: *Str) bool {
    defer wit.plugin_list_string_free(words);
    var best: ?Str = null;
    for (words.ptr[0..words.len]) |w| {
        if (best == null or w.len > best.?.len) best = w;
    }
    if (best) |b| ret.* = copy(slice(b));
    return best != null;
}

export fn exports_acme_library_catalog_parse_book(line: *Str, ret: *Book, err: *Str) bool {
    defer wit.plugin_string_free(line);
    const text = slice(line.*);
    const at = std.mem.indexOf(u8, text, " by ") orelse {
        wit.plugin_string_dup(err, "there is no ` by `");
        return false;
    };
    const authors = allocator.alloc(Str, 1) catch @panic("memory");
    authors[0] = copy(text[at + 4 ..]);
    ret.* = std.mem.zeroes(Book);
    ret.title = copy(text[0..at]);
    ret.authors = .{ .ptr = authors.ptr, .len = 1 };
    ret.marks = wit.ACME_LIBRARY_TYPES_MARKS_NEW_ARRIVAL;
    ret.position = .{ .f0 = 1, .f1 = 0.5 };
    return true;
}

export fn exports_acme_library_catalog_fail(err: *Err) bool {
    err.tag = wit.ACME_LIBRARY_TYPES_SHELF_ERROR_CLOSED;
    return false;
}
