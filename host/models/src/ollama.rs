//! The address of Ollama's OpenAI-compatible API.

/// The variable that sets the address for Ollama's own programs.
pub(super) const HOST_VARIABLE: &str = "OLLAMA_HOST";

/// Ollama's port, for an address that is not a URL and has no port.
const PORT_DEFAULT: &str = "11434";

/// Returns the base URL for a value of `OLLAMA_HOST`, which can be a host, a host with a port, a URL or empty.
pub(super) fn base_url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, authority) = match host.split_once("://") {
        Some(parts) => parts,
        None => ("http", host),
    };
    // `0.0.0.0` and `[::]` are addresses to listen on; a client needs a concrete one.
    let port = ["0.0.0.0", "[::]", ""].iter().find_map(|address| {
        let port = authority.strip_prefix(address)?;
        (port.is_empty() || port.starts_with(':')).then_some(port)
    });
    let authority = match port {
        Some(port) => format!("127.0.0.1{port}"),
        None => authority.to_owned(),
    };
    let after_address = authority.rsplit(']').next().unwrap_or_default();
    let has_port = host.contains("://") || after_address.contains(':');
    let port = if has_port {
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
            ("https://ollama.example/", "https://ollama.example/v1"),
        ];
        for (host, expected) in forms {
            assert_eq!(base_url(host), expected, "{host}");
        }
    }
}
