//! The record of used grants, for grants that are valid for one call or one conversation.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use super::conversation::ConversationNumber;
use crate::grants::file::{private_file, used_grants};
use crate::grants::{Grant, GrantScope};

/// The record of used grants: a file next to the grants file, with one grant identity per line. It persists across processes. The
/// grants file itself is never written. Without a grants file, the record is in memory.
#[derive(Default)]
pub(crate) struct Ledger {
    file: Option<PathBuf>,
    used: HashSet<String>,
    sessions: HashMap<String, ConversationNumber>,
}

/// Whether looking up a grant uses it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantUse {
    /// A call uses the grant.
    Call,
    /// The grant is only looked at, to explain a decision.
    Preview,
}

impl Ledger {
    /// Reads the record.
    ///
    /// # Errors
    /// If the file exists but cannot be read, because the used grants are then unknown.
    pub(crate) fn open(file: PathBuf) -> io::Result<Self> {
        Ok(Self {
            used: used_grants(&file)?,
            file: Some(file),
            sessions: HashMap::new(),
        })
    }

    /// Returns whether a grant applies to a call of this conversation, and records the use for [`GrantUse::Call`].
    ///
    /// A grant does not apply if its use cannot be recorded, because it could then be used again.
    pub(crate) fn admit(&mut self, grant: &Grant, conversation: ConversationNumber, grant_use: GrantUse) -> bool {
        if grant.scope == GrantScope::Always {
            return true;
        }
        let identity = grant.identity();
        let owner = self.sessions.get(&identity);
        if grant.scope == GrantScope::Session
            && let Some(owner) = owner
        {
            return *owner == conversation;
        }
        let is_unused = !self.used.contains(&identity);
        if grant_use == GrantUse::Preview || !is_unused {
            return is_unused;
        }
        if let Some(file) = &self.file
            && let Err(error) = private_file::append_line(file, &identity)
        {
            tracing::error!(%error, file = %file.display(), "the use of a grant could not be recorded, so that it does not apply");
            return false;
        }
        self.used.insert(identity.clone());
        if grant.scope == GrantScope::Session {
            self.sessions.insert(identity, conversation);
        }
        true
    }
}
