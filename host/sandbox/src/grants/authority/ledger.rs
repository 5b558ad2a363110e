//! Which grants for one call or one conversation were used up.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;

use crate::grants::authority::ConversationNumber;
use crate::grants::file::private_file;
use crate::grants::{Grant, GrantScope};

/// Remembers, beyond this process, that a grant was used: in a file beside the grants, one identity a line. The grants
/// themselves are never written to.
pub(crate) struct Ledger {
    file: PathBuf,
    used: HashSet<String>,
    sessions: HashMap<String, ConversationNumber>,
}

impl Ledger {
    /// Reads what was used.
    ///
    /// # Errors
    /// When the file is there and cannot be read: then nobody knows what was used.
    pub(crate) fn open(file: PathBuf) -> io::Result<Self> {
        let used = match std::fs::read_to_string(&file) {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => HashSet::new(),
            Err(error) => return Err(error),
        };
        Ok(Self {
            file,
            used,
            sessions: HashMap::new(),
        })
    }

    /// Uses a grant for a call of this conversation. Returns whether it holds.
    ///
    /// One that could not be written down does not hold: it could be used again.
    pub(crate) fn admit(&mut self, grant: &Grant, conversation: ConversationNumber) -> bool {
        match grant.scope {
            GrantScope::Once => self.spend(grant),
            GrantScope::Session => {
                let identity = grant.identity();
                if let Some(owner) = self.sessions.get(&identity) {
                    return *owner == conversation;
                }
                let is_fresh = self.spend(grant);
                if is_fresh {
                    self.sessions.insert(identity, conversation);
                }
                is_fresh
            }
            _ => true,
        }
    }

    fn spend(&mut self, grant: &Grant) -> bool {
        let identity = grant.identity();
        if self.used.contains(&identity) {
            return false;
        }
        if let Err(error) = private_file::append_line(&self.file, &identity) {
            tracing::error!(%error, file = %self.file.display(), "a grant's use could not be noted, so that it does not hold");
            return false;
        }
        self.used.insert(identity)
    }
}
