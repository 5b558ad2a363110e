//! A guest that returns its arguments, with functions for every type.

wit_bindgen::generate!({ path: "wit", world: "golden" });

use exports::test::golden::echo::{Everything, Guest, Shape};

struct Golden;

impl Guest for Golden {
    fn same(it: Everything) -> Everything {
        it
    }

    fn add(a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }

    fn single(x: f32) -> f32 {
        x
    }

    fn divide(a: f64, b: f64) -> f64 {
        a / b
    }

    fn inspect(deep: Option<Option<Option<u8>>>) -> String {
        format!("{deep:?}")
    }

    fn fail(how: Shape) -> Result<(), Shape> {
        Err(how)
    }

    fn give_up(why: String) {
        panic!("{why}");
    }
}

export!(Golden);
