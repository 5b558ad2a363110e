//! Converts artifacts to the content of a result.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, Resource, ResourceContents};
use serde_json::Value;

use toolwit::Artifact;

/// The kind of an artifact that contains a resource.
const RESOURCE: &str = "resource";

/// The kind of an artifact that refers to a resource.
const RESOURCE_LINK: &str = "resource_link";

/// Converts an artifact to content.
///
/// - The kinds `image/…` and `audio/…` are media types. The value is base64, or an object with base64 under `data`.
/// - The value of the kind `resource` is an object with `uri`, `mime_type`, and either `text` or base64 under `blob`.
/// - The value of the kind `resource_link` is an object with `uri`, `name`, `description` and `mime_type`.
/// - Every other artifact, and an artifact with a value of another form, becomes a resource whose text is the value as
///   JSON. `number` makes the URI of this resource unique in the result.
pub(super) fn content(artifact: &Artifact, number: usize) -> ContentBlock {
    let converted = match artifact.kind.as_str() {
        RESOURCE => resource(&artifact.value).map(ContentBlock::resource),
        RESOURCE_LINK => link(&artifact.value).map(ContentBlock::resource_link),
        kind => media(kind, &artifact.value),
    };
    converted.unwrap_or_else(|| {
        let kind_in_uri: String = artifact.kind.chars().map(uri_character).collect();
        let contents = ResourceContents::text(artifact.value.to_string(), format!("artifact:{kind_in_uri}/{number}"));
        ContentBlock::resource(contents.with_mime_type("application/json"))
    })
}

/// Returns image or audio content, if the kind is a media type of an image or of audio, and the data is base64.
fn media(kind: &str, value: &Value) -> Option<ContentBlock> {
    let (top_level_type, subtype) = kind.split_once('/')?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if subtype.is_empty() || !subtype.chars().all(is_token) {
        return None;
    }
    let data = value.as_str().or_else(|| value["data"].as_str())?;
    STANDARD.decode(data).ok()?;
    match top_level_type {
        "image" => Some(ContentBlock::image(data, kind)),
        "audio" => Some(ContentBlock::audio(data, kind)),
        _ => None,
    }
}

fn resource(value: &Value) -> Option<ResourceContents> {
    let uri = value["uri"].as_str()?;
    let contents = match (value["text"].as_str(), value["blob"].as_str()) {
        (Some(text), _) => ResourceContents::text(text, uri),
        (None, Some(blob)) => {
            STANDARD.decode(blob).ok()?;
            ResourceContents::blob(blob, uri)
        }
        (None, None) => return None,
    };
    Some(match mime_type(value) {
        Some(mime_type) => contents.with_mime_type(mime_type),
        None => contents,
    })
}

fn link(value: &Value) -> Option<Resource> {
    let mut resource = Resource::new(value["uri"].as_str()?, value["name"].as_str()?);
    resource.description = value["description"].as_str().map(str::to_owned);
    resource.mime_type = mime_type(value).map(str::to_owned);
    Some(resource)
}

/// Returns the MIME type of a resource. Its key may be spelled in three ways.
fn mime_type(value: &Value) -> Option<&str> {
    let names = ["mime_type", "mimeType", "mime-type"];
    names.into_iter().find_map(|name| value[name].as_str())
}

/// Returns a character unchanged if it is allowed in the URI, or else `-`.
fn uri_character(character: char) -> char {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | ':' | '/' => character,
        _ => '-',
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn convert(kind: &str, value: Value) -> Value {
        serde_json::to_value(content(&Artifact::new(kind, value), 1)).unwrap()
    }

    #[test]
    fn images_and_audio_are_content_of_their_media_type() {
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        assert_eq!(convert("image/png", json!("AAAA")), image);
        assert_eq!(convert("image/png", json!({"data": "AAAA"})), image);
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        assert_eq!(convert("audio/wav", json!("AAAA")), audio);
    }

    #[test]
    fn resources_keep_their_uri_and_other_objects_are_json() {
        let contents = json!({"uri": "test://x", "mimeType": "text/plain", "text": "hello"});
        let value = json!({"uri": "test://x", "mime_type": "text/plain", "text": "hello"});
        assert_eq!(
            convert("resource", value),
            json!({"type": "resource", "resource": contents})
        );
        let order = json!({"uri": "artifact:order/1", "mimeType": "application/json", "text": "{\"id\":7}"});
        assert_eq!(
            convert("order", json!({"id": 7})),
            json!({"type": "resource", "resource": order})
        );
    }

    #[test]
    fn invalid_media_types_and_invalid_base64_are_sent_as_json() {
        for (kind, value) in [
            ("image/png", json!("not base64")),
            ("image/p n\n", json!("AAAA")),
            ("resource", json!({"uri": "x", "blob": "?"})),
        ] {
            let content = convert(kind, value);
            assert_eq!(content["resource"]["mimeType"], "application/json", "{content}");
        }
    }
}
