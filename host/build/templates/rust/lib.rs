//! The tools of `wit/plugin.wit`.

use std::cell::Cell;

use exports::example::{{snake}}::tools::{Counter, Guest, GuestCounter, Person, Shape};

wit_bindgen::generate!();

struct Plugin;

impl Guest for Plugin {
    type Counter = CounterState;

    fn echo(text: String) -> String {
        text
    }

    fn add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }

    fn greet(person: Person) -> Result<String, String> {
        if person.name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        Ok(match person.age {
            Some(age) => format!("Hello, {} ({age})!", person.name),
            None => format!("Hello, {}!", person.name),
        })
    }

    fn areas(shapes: Vec<Shape>) -> Vec<f64> {
        let area = |shape| match shape {
            Shape::Circle(radius) => std::f64::consts::PI * radius * radius,
            Shape::Square(side) => side * side,
            Shape::Dot => 0.0,
        };
        shapes.into_iter().map(area).collect()
    }

    fn start_counter(value: u32) -> Counter {
        Counter::new(CounterState(Cell::new(value)))
    }
}

struct CounterState(Cell<u32>);

impl GuestCounter for CounterState {
    fn increment(&self, by: u32) -> u32 {
        self.0.set(self.0.get().wrapping_add(by));
        self.0.get()
    }
}

export!(Plugin);
