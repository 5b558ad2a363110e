//! Pages of the lists that clients request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::ErrorData;
use rmcp::model::{ListToolsResult, Tool};

use super::error::invalid_params;

/// Maximum number of items of one page. A page of usual items stays well below a megabyte.
const PAGE_ITEMS_MAX: usize = 200;

/// The length of the list's digest in a cursor, in bytes.
const DIGEST_BYTES: usize = 16;

/// Returns the page of a list of tools that begins at a cursor.
///
/// # Errors
/// As [`page_items`].
pub(crate) fn tool_page(tools: Vec<Tool>, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
    let (tools, next_cursor) = page_items(tools, |tool| &tool.name, cursor)?;
    let mut result = ListToolsResult::with_all_items(tools);
    result.next_cursor = next_cursor;
    Ok(result)
}

/// Returns the page of items that begins at a cursor, and the cursor of the next page. `name` returns the name or URI of
/// an item. A cursor contains the digest of these names, so that a client never combines pages of different lists.
///
/// # Errors
/// If the cursor is invalid, or the list has changed since the cursor was issued.
pub(crate) fn page_items<T>(
    mut items: Vec<T>,
    name: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let digest = || digest_of(items.iter().map(&name));
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let (cursor_digest, start) = parse_cursor(cursor).ok_or_else(|| invalid_params("the cursor is invalid"))?;
            if cursor_digest != digest() {
                return Err(invalid_params("the list has changed; list it from the start"));
            }
            start
        }
    };
    if start > items.len() {
        return Err(invalid_params("the cursor is invalid"));
    }
    let end = items.len().min(start + PAGE_ITEMS_MAX);
    let next_cursor = (end < items.len()).then(|| format_cursor(digest(), end));
    items.truncate(end);
    Ok((items.split_off(start), next_cursor))
}

fn format_cursor(digest: [u8; DIGEST_BYTES], start: usize) -> String {
    let mut bytes = digest.to_vec();
    bytes.extend(u32::try_from(start).unwrap_or(u32::MAX).to_be_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

fn parse_cursor(cursor: &str) -> Option<([u8; DIGEST_BYTES], usize)> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (digest, start) = bytes.split_at_checked(DIGEST_BYTES)?;
    let start = u32::from_be_bytes(start.try_into().ok()?);
    Some((digest.try_into().ok()?, usize::try_from(start).ok()?))
}

/// Returns the digest of the names of a list, in order.
fn digest_of<'n>(names: impl Iterator<Item = &'n str>) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new();
    for name in names {
        hasher.update(name.as_bytes());
        hasher.update(b"\n");
    }
    let mut digest = [0; DIGEST_BYTES];
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..DIGEST_BYTES]);
    digest
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::JsonObject;

    use super::*;

    fn tools(count: usize) -> Vec<Tool> {
        let tool = |number: usize| Tool::new(format!("t{number}"), "", JsonObject::new());
        (0..count).map(tool).collect()
    }

    #[test]
    fn each_tool_is_on_exactly_one_page() {
        let all_tools = tools(2 * PAGE_ITEMS_MAX + 1);
        let mut paged_tools = Vec::new();
        let mut cursor = None;
        loop {
            let result = tool_page(all_tools.clone(), cursor.as_deref()).unwrap();
            paged_tools.extend(result.tools);
            cursor = result.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(paged_tools, all_tools);
        assert_eq!(tool_page(tools(PAGE_ITEMS_MAX), None).unwrap().next_cursor, None);
    }

    // attack: G8
    #[test]
    fn invalid_cursors_and_cursors_of_an_earlier_list_are_refused() {
        let cursor = tool_page(tools(PAGE_ITEMS_MAX + 1), None).unwrap().next_cursor.unwrap();
        let error_message =
            |cursor: &str, count: usize| tool_page(tools(count), Some(cursor)).unwrap_err().message.to_string();
        assert!(error_message(&cursor, PAGE_ITEMS_MAX + 2).contains("changed"));
        for garbage in ["", "x", "../../etc/passwd", "\u{0}", &"A".repeat(100_000)] {
            assert!(error_message(garbage, 3).contains("invalid"));
        }
        let beyond_end = format_cursor(digest_of(tools(3).iter().map(|tool| &*tool.name)), 4);
        assert!(error_message(&beyond_end, 3).contains("invalid"));
    }
}
