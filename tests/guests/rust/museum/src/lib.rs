//! A guest with resources in every position of a result.

wit_bindgen::generate!({ path: "wit", world: "museum" });

use std::cell::Cell;

use exports::test::museum::collection::{
    Flaw, Guest, GuestPiece, GuestTicket, Label, Pair, Piece as Handle, PieceBorrow, Ticket as TicketHandle,
};

struct Museum;

struct Piece {
    id: String,
    looks: Cell<u32>,
    flaw: Option<Flaw>,
}

struct Ticket(u32);

impl Piece {
    fn named(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            looks: Cell::new(0),
            flaw: None,
        }
    }

    fn handle(id: impl Into<String>) -> Handle {
        Handle::new(Self::named(id))
    }
}

impl GuestTicket for Ticket {
    fn price(&self) -> u32 {
        self.0
    }
}

impl GuestPiece for Piece {
    fn new(id: String) -> Result<Self, String> {
        match id.chars().next() {
            Some('0'..='9') => Err(format!("`{id}` begins with a digit")),
            _ => Ok(Self::named(id)),
        }
    }

    fn id(&self) -> String {
        match self.flaw {
            Some(Flaw::Empty) => String::new(),
            Some(Flaw::Blank) => "  \t".to_owned(),
            Some(Flaw::Long) => "x".repeat(1_000),
            Some(Flaw::Control) => "red\u{1b}[31m".to_owned(),
            Some(Flaw::Unlatin) => "猫".to_owned(),
            Some(Flaw::IdTraps) => panic!("the label fell off"),
            Some(Flaw::IdSpins) => loop {
                self.looks.set(self.looks.get().wrapping_add(1));
            },
            _ => self.id.clone(),
        }
    }

    fn describe(&self) -> Label {
        if let Some(Flaw::DescribeTraps) = self.flaw {
            panic!("the description is missing");
        }
        let times = if matches!(self.flaw, Some(Flaw::DescribeLong)) { 2 << 20 } else { 1 };
        Label {
            title: format!("Piece {}", self.id).repeat(times),
            available_tools: vec!["forged".to_owned()],
            id: 7,
            looks: self.looks.get(),
        }
    }

    fn parts(&self) -> Vec<Handle> {
        ["front", "back"].map(|part| Self::handle(format!("{}-{part}", self.id))).into()
    }

    fn look(&self) -> u32 {
        self.looks.set(self.looks.get() + 1);
        self.looks.get()
    }

    fn is_same(&self, other: PieceBorrow<'_>) -> bool {
        self.id == other.get::<Self>().id
    }

    fn take(&self, other: Handle) -> u32 {
        let other = other.into_inner::<Self>();
        self.looks.set(self.looks.get() + other.looks.get());
        self.looks.get()
    }

    fn find(id: String) -> Option<Handle> {
        (id != "nothing").then(|| Self::handle(id))
    }
}

impl Guest for Museum {
    type Piece = Piece;
    type Ticket = Ticket;

    fn two() -> Pair {
        Pair {
            left: Piece::handle("left"),
            right: Some(Piece::handle("right")),
            note: "side by side".to_owned(),
        }
    }

    fn either(fine: bool) -> Result<Handle, TicketHandle> {
        if fine {
            Ok(Piece::handle("either"))
        } else {
            Err(TicketHandle::new(Ticket(3)))
        }
    }

    fn maybe(there: bool) -> Option<Handle> {
        there.then(|| Piece::handle("maybe"))
    }

    fn mixed() -> (TicketHandle, Vec<Handle>, TicketHandle) {
        (
            TicketHandle::new(Ticket(1)),
            vec![Piece::handle("m-1"), Piece::handle("m-2")],
            TicketHandle::new(Ticket(2)),
        )
    }

    fn crowd(count: u32) -> Vec<Result<Handle, String>> {
        (0..count)
            .map(|at| match at % 3 {
                2 => Err("broken".to_owned()),
                _ => Ok(Piece::handle(format!("p-{at}"))),
            })
            .collect()
    }

    fn wrong(flaw: Flaw) -> Handle {
        Handle::new(Piece {
            flaw: Some(flaw),
            ..Piece::named("wrong")
        })
    }

    fn swallow(all: Vec<Option<Handle>>) -> u32 {
        all.into_iter().flatten().count().try_into().unwrap_or(u32::MAX)
    }
}

export!(Museum);
