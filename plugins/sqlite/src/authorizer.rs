//! The permissions of statements.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Settings and reports that change nothing and read no other file.
const PRAGMAS: [&str; 14] = [
    "compile_options",
    "encoding",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "page_count",
    "page_size",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Settings of the application that are stored in the file.
const STORED_NUMBERS: [&str; 2] = ["application_id", "user_version"];

/// The modules of virtual tables, which store their rows in the same database.
const MODULES: [&str; 5] = ["fts3", "fts4", "fts5", "rtree", "rtree_i32"];

/// Functions that load code or change the tokenizer of an index.
const DENIED_FUNCTIONS: [&str; 2] = ["fts3_tokenizer", "load_extension"];

/// Allows statements that only read.
pub(crate) fn allow_reads(context: &AuthContext<'_>) -> Authorization {
    let is_allowed = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !is_one_of(&DENIED_FUNCTIONS, function_name),
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => is_one_of(&PRAGMAS, pragma_name) || (is_one_of(&STORED_NUMBERS, pragma_name) && pragma_value.is_none()),
        _ => false,
    };
    decision(is_allowed)
}

/// Allows changes of the database itself. Denies access to other databases, transactions of the statements, and settings of the
/// connection.
pub(crate) fn allow_changes(context: &AuthContext<'_>) -> Authorization {
    let is_allowed = match context.action {
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Unknown { .. } => false,
        AuthAction::Pragma { pragma_name, .. } if is_one_of(&STORED_NUMBERS, pragma_name) => true,
        AuthAction::Pragma { .. } | AuthAction::Function { .. } => return allow_reads(context),
        AuthAction::CreateVtable { module_name, .. } | AuthAction::DropVtable { module_name, .. } => {
            is_one_of(&MODULES, module_name)
        }
        _ => true,
    };
    decision(is_allowed)
}

fn is_one_of(names: &[&str], name: &str) -> bool {
    names.iter().any(|listed| listed.eq_ignore_ascii_case(name))
}

fn decision(is_allowed: bool) -> Authorization {
    if is_allowed {
        Authorization::Allow
    } else {
        Authorization::Deny
    }
}
