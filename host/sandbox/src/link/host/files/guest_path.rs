//! Joining the paths of a guest. A path of a guest is text, and its separator is `/` on every platform.

/// Joins `base`, an absolute path of the guest, with `path`, and resolves dot segments. If `path` is absolute, `base` is
/// ignored. A `..` segment at the root stays at the root.
pub(super) fn join_paths(base: &str, path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    let base = if path.starts_with('/') { "" } else { base };
    for segment in base.split('/').chain(path.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            name => segments.push(name),
        }
    }
    format!("/{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_are_resolved_and_stay_below_the_root() {
        for (base, path, joined_path) in [
            ("/", ".", "/"),
            ("/", "etc/passwd", "/etc/passwd"),
            ("/data", "a/./b//c", "/data/a/b/c"),
            ("/data", "sub/../a", "/data/a"),
            ("/data", "../x", "/x"),
            ("/data", "../../../x", "/x"),
            ("/data", "/x", "/x"),
        ] {
            assert_eq!(join_paths(base, path), joined_path, "{base} {path}");
        }
    }
}
