//! Stores the sessions of conversations in one SQLite file, which several processes can share.
//!
//! [`SqliteJournalStore`] is a [`JournalStore`](toolwit_agent::JournalStore): each event is stored before the action
//! that it announces can have an effect. A killed process loses nothing that was stored, and another process can
//! continue the session.

mod answers;
mod large_texts;
mod lock;
mod open;
mod origin;
mod session;
mod store;

pub use origin::FileOrigin;
pub use store::SqliteJournalStore;
