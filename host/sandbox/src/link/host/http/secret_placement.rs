//! Inserts secrets into an outgoing request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use crate::grants::authority::Secret;
use crate::grants::{RequestTarget, SecretPlacement};

/// Inserts every secret whose grant matches the target into the request, at the position that the grant specifies. Replaces
/// the guest's value at this position.
///
/// Returns the path with its query, or `None` if a header cannot have the granted name or the value of the secret.
pub(super) fn insert_secrets(secrets: &[Secret], target: &RequestTarget, headers: &mut HeaderMap) -> Option<String> {
    let mut path = target.path.clone();
    for secret in secrets {
        let Some(secret_target) = secret
            .rule
            .target
            .as_ref()
            .filter(|secret_target| secret_target.matches(target))
        else {
            continue;
        };
        match &secret_target.placement {
            SecretPlacement::Header(name) => {
                set_header(headers, HeaderName::from_bytes(name.as_bytes()).ok()?, &secret.value)?
            }
            SecretPlacement::Bearer => {
                set_header(
                    headers,
                    AUTHORIZATION,
                    &Zeroizing::new(format!("Bearer {}", secret.value.as_str())),
                )?;
            }
            SecretPlacement::Basic => {
                let encoded = Zeroizing::new(STANDARD.encode(secret.value.as_bytes()));
                set_header(
                    headers,
                    AUTHORIZATION,
                    &Zeroizing::new(format!("Basic {}", encoded.as_str())),
                )?;
            }
            SecretPlacement::Query(field) => path = with_query_field(&path, field, &secret.value),
        }
    }
    Some(path)
}

/// Replaces the value of a header. Returns `None` if the value is not valid in a header.
fn set_header(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Option<()> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Some(())
}

/// Returns a path with a field set in its query. Removes the guest's fields of that name, even if their names are
/// percent-encoded.
fn with_query_field(path: &str, field: &str, value: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let other_fields = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && percent_decoded(name) != field.as_bytes()
    });
    let secret_field = format!("{field}={}", percent_encoded(value));
    let query: Vec<_> = other_fields.map(str::to_owned).chain([secret_field]).collect();
    format!("{path}?{}", query.join("&"))
}

/// Decodes percent-encoded bytes, and `+` as a space, as servers decode the fields of a query.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        let escape = bytes.get(index + 1..index + 3).filter(|_| byte == b'%');
        let escape = escape
            .filter(|hex| hex.iter().all(u8::is_ascii_hexdigit))
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escape {
            Some(value) => {
                decoded.push(value);
                index += 3;
            }
            None => {
                decoded.push(if byte == b'+' { b' ' } else { byte });
                index += 1;
            }
        }
    }
    decoded
}

fn percent_encoded(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::grants::Grants;

    fn secret(rule: &str) -> Secret {
        let text = format!("version = 1\n[[grant]]\nplugin = \"p\"\nany-version = true\nsecrets = [{rule}]");
        let grants = Grants::parse(text.as_bytes()).unwrap();
        Secret {
            rule: grants.grants[0].rules.secrets[0].clone(),
            value: Zeroizing::new("top secret&1".to_owned()),
        }
    }

    /// Inserts a secret with this rule into a request. Returns the path with its query, and the headers.
    fn insert_secret(rule: &str, url: &str) -> (String, HeaderMap) {
        let target = RequestTarget::parse(url).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer of-the-guest"));
        headers.append("x-key", HeaderValue::from_static("of-the-guest"));
        headers.append("x-key", HeaderValue::from_static("of-the-guest-too"));
        let path = insert_secrets(&[secret(rule)], &target, &mut headers).unwrap();
        (path, headers)
    }

    #[test]
    fn a_secret_replaces_the_value_of_the_guest() {
        let (_, headers) = insert_secret(
            r#"{ name = "k", host = "a.example", header = "X-Key" }"#,
            "https://a.example/",
        );
        let values: Vec<_> = headers.get_all("x-key").iter().collect();
        assert_eq!(values, ["top secret&1"]);
        let (_, headers) = insert_secret(
            r#"{ name = "k", host = "a.example", bearer = true }"#,
            "https://a.example/",
        );
        assert_eq!(headers[AUTHORIZATION], "Bearer top secret&1");
        let (_, headers) = insert_secret(
            r#"{ name = "k", host = "a.example", basic = true }"#,
            "https://a.example/",
        );
        assert_eq!(headers[AUTHORIZATION], "Basic dG9wIHNlY3JldCYx");
        let rule = r#"{ name = "k", host = "a.example", query = "key" }"#;
        let (path, _) = insert_secret(rule, "https://a.example/p?a=1&key=x&%6Bey=y&key&b");
        assert_eq!(path, "/p?a=1&b&key=top%20secret%261");
    }

    #[test]
    fn a_secret_is_sent_only_to_its_target() {
        let rule = r#"{ name = "k", host = "a.example", path = "/v1", bearer = true }"#;
        for url in [
            "http://a.example/v1",
            "https://b.example/v1",
            "https://a.example:444/v1",
            "https://a.example/v2",
        ] {
            let (path, headers) = insert_secret(rule, url);
            assert_eq!(headers[AUTHORIZATION], "Bearer of-the-guest", "{url}");
            assert!(!path.contains("secret"));
        }
    }

    #[test]
    fn only_two_hexadecimal_digits_after_a_percent_sign_are_decoded() {
        assert_eq!(percent_decoded("%6b%65y+1"), b"key 1");
        assert_eq!(percent_decoded("%+5%-5%6"), b"% 5%-5%6");
    }
}
