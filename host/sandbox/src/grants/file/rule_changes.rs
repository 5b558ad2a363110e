//! The checks of new rules, and the removal of rules that they replace.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toml_edit::ArrayOfTables;

use super::error::GrantsFileErrorReason;
use super::format::remove_rules;
use super::writable_record::WritableRecord;
use crate::grants::directories::{DirectoryIdentity, GrantableDirectories, OpenDirectory, WritableRoots};
use crate::grants::{DirectoryRule, Grant, GrantRules};

/// Checks that the directories of new rules can be granted in addition to the earlier grants of a file. Returns the identities
/// of the directories, by their paths in the rules.
pub(super) fn check_directories(
    rules: &GrantRules,
    earlier: &[Grant],
    grants_file: &Path,
) -> Result<HashMap<PathBuf, DirectoryIdentity>, GrantsFileErrorReason> {
    let all_rules = earlier.iter().flat_map(|grant| &grant.rules.files).chain(&rules.files);
    let recorded = WritableRecord::next_to(Some(grants_file)).read();
    let grantable = GrantableDirectories {
        writable: WritableRoots::of(all_rules, recorded.map_err(GrantsFileErrorReason::Read)?),
        ..GrantableDirectories::default()
    };
    let check_rule = |rule: &DirectoryRule| match OpenDirectory::check(rule, &grantable) {
        Ok(identity) => Ok((rule.host.clone(), identity)),
        Err(error) => {
            let message = format!("the directory `{}`: {error}", rule.host.display());
            Err(GrantsFileErrorReason::NotGrantable(message))
        }
    };
    rules.files.iter().map(check_rule).collect()
}

/// Reduces the rules of the table with this index from `before` to `after`. Removes the table if no rules remain.
pub(super) fn reduce_rules(
    tables: &mut ArrayOfTables,
    index: usize,
    before: &GrantRules,
    after: &GrantRules,
) -> Result<(), GrantsFileErrorReason> {
    if before == after {
        return Ok(());
    }
    if *after == GrantRules::default() {
        tables.remove(index);
        return Ok(());
    }
    match tables.get_mut(index) {
        Some(table) => remove_rules(table, before, after).map_err(GrantsFileErrorReason::NotGrantable),
        None => Ok(()),
    }
}
