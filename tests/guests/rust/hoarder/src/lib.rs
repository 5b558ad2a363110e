//! Makes objects of the host, and never drops them.

wit_bindgen::generate!({ path: "wit", world: "hoarder" });

use std::cell::Cell;
use std::mem::forget;

use exports::test::hoarder::piles::{Guest, GuestPile};
use wasip2::http::types::{Fields, Method, OutgoingRequest};

struct Hoarder;

struct Pile {
    id: String,
    height: Cell<u32>,
}

/// The size of the strings that the guest passes.
const TEXT_BYTES: usize = 1 << 20;

impl GuestPile for Pile {
    fn new(id: String) -> Self {
        Self {
            id,
            height: Cell::new(0),
        }
    }

    fn id(&self) -> String {
        self.id.clone()
    }

    fn add(&self) -> u32 {
        self.height.set(self.height.get() + 1);
        self.height.get()
    }
}

impl Guest for Hoarder {
    type Pile = Pile;

    fn hoard(kind: String, count: u32) -> u32 {
        match kind.as_str() {
            "bodies" => (0..count).for_each(|_| body()),
            "fields" => (0..count).for_each(|_| forget(fields())),
            "clones" => clones(count),
            _ => texts(&kind, count),
        }
        count
    }
}

/// Makes a request that is never sent, and fills the buffers of its body.
fn body() {
    let request = OutgoingRequest::new(Fields::new());
    let body = request.body().expect("a new request has a body");
    let stream = body.write().expect("a new body has a stream");
    while let Ok(room @ 1..) = stream.check_write() {
        stream.write(&vec![b'x'; room as usize]).expect("there is room");
    }
    forget((request, body, stream));
}

/// Makes a header list of nearly the maximum size.
fn fields() -> Fields {
    let fields = Fields::new();
    fields
        .append("x-long", &[b'x'; 60_000])
        .expect("the list is below its limit");
    fields
}

/// Copies a header list, and changes each copy, so that it is a list of its own.
fn clones(count: u32) {
    let original = fields();
    for _ in 0..count {
        let copy = original.clone();
        copy.append("x-short", b"x").expect("the list is below its limit");
        forget(copy);
    }
}

/// Makes requests with long texts.
fn texts(kind: &str, count: u32) {
    let text = "a".repeat(TEXT_BYTES);
    let method = Method::Other(text.clone());
    for _ in 0..count {
        let request = OutgoingRequest::new(Fields::new());
        let is_set = match kind {
            "authorities" => request.set_authority(Some(&text)),
            _ => request.set_method(&method),
        };
        is_set.expect("the host does not limit its length");
        forget(request);
    }
}

export!(Hoarder);
