//! The versions of `toolwit:plugin`: a released one never changes.

use toolwit::tool::text::sha256;

use crate::files::read_below;

/// The released versions, with the SHA-256 of their WIT.
const RELEASED: [(&str, &str); 1] = [(
    "0.1.0",
    "9722ae0690e5849281c913901b2c87eb1f65f446026d4b68d240eda89134d94a",
)];

#[test]
fn released_wit_never_changes_and_each_folder_has_its_own_version() {
    let files = read_below("wit");
    let text = |version: &str| {
        let path = format!("wit/{version}/plugin.wit");
        let file = files.iter().find(|file| file.path.to_string_lossy() == path);
        file.map(|file| file.text.clone()).unwrap_or_default()
    };
    for (version, digest) in RELEASED {
        assert_eq!(
            sha256(&text(version)),
            digest,
            "wit/{version} is released: add a new version"
        );
    }
    let folders = files.iter().filter_map(|file| {
        let folder = file.path.parent()?.file_name()?.to_str()?.to_owned();
        folder
            .starts_with(|first: char| first.is_ascii_digit())
            .then_some(folder)
    });
    let folders: Vec<_> = folders.collect();
    assert!(folders.len() > RELEASED.len(), "{folders:?}");
    for version in folders {
        let package = format!("package toolwit:plugin@{version};");
        assert!(text(&version).contains(&package), "wit/{version}");
    }
}
