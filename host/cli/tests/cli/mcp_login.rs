//! `toolwit mcp login` and `toolwit mcp logout`, with an MCP server that is its own issuer.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::support::Workspace;

const TOKEN: &str = "the-access-token-of-ada";

/// A request: the method, the path, the headers in lower case, and the body.
struct Request {
    path: String,
    headers: String,
    body: String,
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let (mut first, mut headers) = (String::new(), String::new());
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() <= 2 {
            break;
        }
        headers.push_str(&line.to_lowercase());
    }
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).unwrap();
    Request {
        path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
    }
}

/// Serves until the process ends. Returns the origin.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let own = origin.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let request = read(&stream);
            let (head, body) = answer(&own, &request);
            let body = if body.is_null() {
                String::new()
            } else {
                body.to_string()
            };
            let _ = (&stream).write_all(
                format!(
                    "HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                )
                .as_bytes(),
            );
        }
    });
    origin
}

fn answer(origin: &str, request: &Request) -> (String, Value) {
    let ok = "200 OK\r\nContent-Type: application/json".to_owned();
    let path = request.path.split('?').next().unwrap();
    match path {
        "/.well-known/oauth-protected-resource/mcp" => (
            ok,
            json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}),
        ),
        "/.well-known/oauth-authorization-server" => {
            let endpoint = |path: &str| format!("{origin}{path}");
            let metadata = json!({
                "issuer": origin, "authorization_endpoint": endpoint("/authorize"), "token_endpoint": endpoint("/token"),
                "registration_endpoint": endpoint("/register"), "code_challenge_methods_supported": ["S256"],
            });
            (ok, metadata)
        }
        "/register" => ("201 Created".to_owned(), json!({"client_id": "registered"})),
        "/authorize" => {
            let parameter = |name: &str| {
                let (_, rest) = request.path.split_once(&format!("{name}=")).unwrap();
                rest.split('&').next().unwrap().to_owned()
            };
            let redirect = parameter("redirect_uri").replace("%3A", ":").replace("%2F", "/");
            let location = format!("{redirect}?code=the-code&state={}", parameter("state"));
            (format!("302 Found\r\nLocation: {location}"), Value::Null)
        }
        "/token" => (
            ok,
            json!({"access_token": TOKEN, "token_type": "Bearer", "scope": "read"}),
        ),
        "/mcp" if !request.headers.contains(&format!("authorization: bearer {TOKEN}")) => {
            let challenge = "401 Unauthorized\r\nWWW-Authenticate: Bearer scope=\"read\"";
            (challenge.to_owned(), Value::Null)
        }
        "/mcp" => mcp(&serde_json::from_str(&request.body).unwrap_or_default()),
        _ => ("404 Not Found".to_owned(), Value::Null),
    }
}

fn mcp(message: &Value) -> (String, Value) {
    let ok = "200 OK\r\nContent-Type: application/json".to_owned();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "docs", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}),
        "tools/call" => json!({"content": [{"type": "text", "text": "you are ada"}]}),
        method if method.starts_with("notifications/") => return ("202 Accepted".to_owned(), Value::Null),
        _ => return ("400 Bad Request".to_owned(), Value::Null),
    };
    (ok, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// Requests an address. Returns the head of the response.
fn get(url: &str) -> String {
    let (authority, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_user_logs_in_and_out() {
    let origin = serve();
    let servers = format!("[mcp.docs]\nurl = \"{origin}/mcp\"\n");
    let workspace = Workspace::new().file(".home/.config/toolwit/mcp.toml", servers);
    let call = ["call", "mcp:docs#whoami", "--plugins", "tools"];
    let refused = workspace.run(&call);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.stderr.contains("`toolwit mcp login docs` logs in"),
        "{}",
        refused.stderr
    );
    let listed = workspace.run(&["list", "--contact", "--plugins", "tools"]);
    assert!(listed.stdout.contains("`toolwit mcp login docs` logs in"), "{listed}");

    let mut login = workspace.start(&["mcp", "login", "docs"]);
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find(|line| line.starts_with(&origin)).unwrap();
    let redirect = get(&url);
    let location = redirect
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .unwrap();
    assert!(get(location).starts_with("HTTP/1.1 200"), "{location}");
    let shown: Vec<String> = lines.collect();
    assert!(login.wait().unwrap().success(), "{shown:?}");
    assert!(shown.iter().any(|line| line.contains("logged in to docs")), "{shown:?}");
    assert!(!format!("{shown:?}").contains(TOKEN));

    let called = workspace.run(&call);
    assert_eq!(
        (called.code, called.stdout.trim()),
        (Some(0), "you are ada"),
        "{called}"
    );
    let file = workspace.path().join(".data/toolwit/mcp-logins.toml");
    assert!(fs::read_to_string(&file).unwrap().contains(TOKEN));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let (code, out) = workspace.json(&["mcp", "logout", "docs", "--json"]);
    assert_eq!(
        (code, &out["existed"], &out["revoked"]),
        (Some(0), &json!(true), &json!(false))
    );
    assert!(!fs::read_to_string(&file).unwrap().contains(TOKEN));
    assert_ne!(workspace.run(&call).code, Some(0));
}

#[test]
fn a_login_needs_a_server_that_uses_one() {
    let servers = "[mcp.fixed]\nurl = \"https://docs.example.com/mcp\"\nbearer = \"a-fixed-token\"\n";
    let workspace = Workspace::new().file("mcp.toml", servers);
    let login = |name: &str| workspace.run(&["mcp", "login", name, "--mcp", "mcp.toml"]);
    let unknown = login("other");
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(unknown.stderr.contains("`other` is not configured"), "{unknown}");
    assert!(unknown.stderr.contains("the servers are fixed"), "{unknown}");
    let fixed = login("fixed");
    assert_eq!(fixed.code, Some(2), "{fixed}");
    assert!(fixed.stderr.contains("does not use a login"), "{fixed}");
}
