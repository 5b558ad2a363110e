//! The tools of `wit/plugin.wit`.

const std = @import("std");
const wit = @import("bindings/plugin.zig");

// Memory of arguments and results: the caller of a tool frees it with the C library.
const allocator = std.heap.c_allocator;

// Converts a slice to a text or a list of the bindings. The pointer of an empty slice is outside of the memory, which the host refuses.
fn list(comptime List: type, items: anytype) List {
    return .{ .ptr = if (items.len == 0) null else items.ptr, .len = items.len };
}

// Arguments belong to the function, which frees them. Results belong to the caller.

export fn exports_example_{{snake}}_tools_echo(text: *wit.plugin_string_t, ret: *wit.plugin_string_t) void {
    ret.* = text.*;
}

export fn exports_example_{{snake}}_tools_add(a: i32, b: i32) i32 {
    return a +% b;
}

// Returns true and sets `ret`, or returns false and sets `err`.
export fn exports_example_{{snake}}_tools_greet(
    person: *wit.exports_example_{{snake}}_tools_person_t,
    ret: *wit.plugin_string_t,
    err: *wit.plugin_string_t,
) bool {
    defer wit.exports_example_{{snake}}_tools_person_free(person);
    const name = person.name.ptr[0..person.name.len];
    if (name.len == 0) {
        wit.plugin_string_dup(err, "the name is empty");
        return false;
    }
    const text = if (person.age.is_some)
        std.fmt.allocPrint(allocator, "Hello, {s} ({d})!", .{ name, person.age.val })
    else
        std.fmt.allocPrint(allocator, "Hello, {s}!", .{name});
    const bytes = text catch @panic("out of memory");
    ret.* = list(wit.plugin_string_t, bytes);
    return true;
}

export fn exports_example_{{snake}}_tools_areas(
    shapes: *wit.exports_example_{{snake}}_tools_list_shape_t,
    ret: *wit.plugin_list_f64_t,
) void {
    defer wit.exports_example_{{snake}}_tools_list_shape_free(shapes);
    const areas = allocator.alloc(f64, shapes.len) catch @panic("out of memory");
    for (shapes.ptr[0..shapes.len], areas) |shape, *area| {
        area.* = switch (shape.tag) {
            wit.EXPORTS_EXAMPLE_{{SCREAMING}}_TOOLS_SHAPE_CIRCLE => std.math.pi * shape.val.circle * shape.val.circle,
            wit.EXPORTS_EXAMPLE_{{SCREAMING}}_TOOLS_SHAPE_SQUARE => shape.val.square * shape.val.square,
            else => 0,
        };
    }
    ret.* = list(wit.plugin_list_f64_t, areas);
}

const Counter = struct { value: u32 };

export fn exports_example_{{snake}}_tools_start_counter(value: u32) wit.exports_example_{{snake}}_tools_own_counter_t {
    const counter = allocator.create(Counter) catch @panic("out of memory");
    counter.* = .{ .value = value };
    return wit.exports_example_{{snake}}_tools_counter_new(@ptrCast(counter));
}

export fn exports_example_{{snake}}_tools_method_counter_increment(self: *Counter, by: u32) u32 {
    self.value +%= by;
    return self.value;
}

export fn exports_example_{{snake}}_tools_counter_destructor(self: *Counter) void {
    allocator.destroy(self);
}
