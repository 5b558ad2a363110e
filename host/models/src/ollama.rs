//! The base URL of Ollama's OpenAI-compatible API.

/// The environment variable from which Ollama's own programs read the address of the server.
pub(super) const HOST_VARIABLE: &str = "OLLAMA_HOST";

/// Ollama's default port. It is used for an address that is not a URL and has no port.
const PORT_DEFAULT: &str = "11434";

/// Returns the base URL for a value of `OLLAMA_HOST`, which can be a host, a host with a port, a URL or empty.
pub(super) fn base_url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, authority) = match host.split_once("://") {
        Some(parts) => parts,
        None => ("http", host),
    };
    // A server listens on `0.0.0.0` or `[::]`, which stand for all its addresses. A client connects to one address: loopback.
    let bracketed = authority
        .parse::<std::net::Ipv6Addr>()
        .map(|address| format!("[{address}]"));
    let authority = bracketed.as_deref().unwrap_or(authority);
    let port = ["0.0.0.0", "[::]", ""].iter().find_map(|address| {
        let port = authority.strip_prefix(address)?;
        (port.is_empty() || port.starts_with(':')).then_some(port)
    });
    let authority = match port {
        Some(port) => format!("127.0.0.1{port}"),
        None => authority.to_owned(),
    };
    // The colons inside the brackets of an IPv6 address do not start a port.
    let after_brackets = authority.rsplit(']').next().unwrap_or_default();
    let is_url = host.contains("://");
    let port = if is_url || after_brackets.contains(':') {
        String::new()
    } else {
        format!(":{PORT_DEFAULT}")
    };
    format!("{scheme}://{authority}{port}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_variable_becomes_a_base_url() {
        let forms = [
            ("", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0:80", "http://127.0.0.1:80/v1"),
            ("[::]:80", "http://127.0.0.1:80/v1"),
            (":8080", "http://127.0.0.1:8080/v1"),
            ("0.0.0.0.example", "http://0.0.0.0.example:11434/v1"),
            ("gpu-box", "http://gpu-box:11434/v1"),
            ("gpu-box:1", "http://gpu-box:1/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("::1", "http://[::1]:11434/v1"),
            ("::", "http://127.0.0.1:11434/v1"),
            ("https://ollama.example/", "https://ollama.example/v1"),
        ];
        for (host, expected) in forms {
            assert_eq!(base_url(host), expected, "{host}");
        }
    }
}
