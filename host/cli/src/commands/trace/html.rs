//! A trace as one HTML page.

use std::fmt::Write;

use super::rows::{Row, RowKind};
use toolwit::tool::text::printable;

const STYLE: &str = "\
body{font:14px/1.5 system-ui,sans-serif;margin:2em}\
table{border-collapse:collapse;width:100%}\
td{padding:2px 8px;vertical-align:top}\
td.name{white-space:nowrap;font-family:monospace}\
td.bar{width:35%}\
td.time{text-align:right;white-space:nowrap}\
td.bar i{display:block;height:12px;margin-top:5px;min-width:2px;background:#49c}\
tr.turn{font-weight:bold;border-top:1px solid #999}\
tr.call td.bar i{background:#4a7}\
tr.tools{color:#960}\
tr.error td.detail{color:#b00}";

/// Returns the rows of a trace as one HTML page. The page has no script and loads no resources. Its
/// Content-Security-Policy forbids both.
pub(super) fn html_page(title: &str, rows: &[Row]) -> String {
    let title = escape(title);
    let end_ms = rows.iter().map(Row::end_ms).max().unwrap_or(0).max(1);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n"
    );
    for row in rows {
        let kind = match row.kind {
            RowKind::Turn => "turn",
            RowKind::Model => "model",
            RowKind::Call => "call",
            RowKind::Tools => "tools",
            RowKind::Note => "note",
        };
        let error = if row.is_error { " error" } else { "" };
        let percent = |ms: u64| u128::from(ms) * 100 / u128::from(end_ms);
        let (bar, time) = match row.wall_ms {
            Some(wall_ms) => {
                let (left, width) = (percent(row.start_ms), percent(wall_ms));
                let bar = format!("<i style=\"margin-left:{left}%;width:{width}%\"></i>");
                (bar, format!("{wall_ms} ms"))
            }
            None => (String::new(), String::new()),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "<tr class=\"{kind}{error}\"><td class=\"time\">{}</td><td class=\"name\" style=\"padding-left:{}em\">{}</td><td class=\"bar\">{bar}</td>\
             <td class=\"time\">{time}</td><td class=\"time\">{}</td><td class=\"detail\">{}</td></tr>",
            row.sequence,
            row.depth,
            escape(&row.name),
            escape(&row.usage()),
            escape(&row.detail)
        );
    }
    page.push_str("</table>\n</html>\n");
    page
}

/// Escapes a text for HTML content and for attributes in quotes. Removes control characters and invisible characters.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: J3
    #[test]
    fn text_of_a_guest_is_never_markup() {
        let hostile = "</td><script>alert('1')</script><img src=x onerror=\"a\">&\u{202e}\x1b";
        let row = Row {
            sequence: 0,
            kind: RowKind::Call,
            depth: 1,
            name: hostile.to_owned(),
            start_ms: u64::MAX,
            wall_ms: Some(u64::MAX),
            is_error: true,
            fuel: Some(1),
            memory_bytes: Some(u64::MAX),
            detail: hostile.to_owned(),
        };
        let page = html_page(hostile, &[row]);
        for forbidden in ["<script", "<img", "\u{202e}", "\x1b", "src=\"", "http:", "https:"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert_eq!(page.matches("&lt;script&gt;").count(), 4);
    }
}
