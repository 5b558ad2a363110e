//! Fetching pages from granted hosts.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::host::Host;

/// A site on loopback: the response of each path. Records the requested paths.
struct Site {
    port: u16,
    requested: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    async fn start(respond: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requested = Arc::<Mutex<Vec<String>>>::default();
        let recorded = requested.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") && stream.read_buf(&mut request).await.is_ok_and(|read| read > 0)
                {
                }
                let request = String::from_utf8_lossy(&request);
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let response = respond(&path);
                recorded.lock().unwrap().push(path);
                let _ = stream.write_all(response.as_bytes()).await;
            }
        });
        Self { port, requested, task }
    }

    fn requested(&self) -> Vec<String> {
        self.requested.lock().unwrap().clone()
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A host that grants this site.
    async fn granted(&self) -> Host {
        let lines = format!(
            "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {}, addresses = [\"127.0.0.1\"] }}]",
            self.port
        );
        Host::start("http_fetch", &lines).await
    }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn html(body: &str) -> String {
    response("200 OK", "Content-Type: text/html; charset=utf-8\r\n", body)
}

#[tokio::test]
async fn page_of_a_granted_host_is_read_in_parts() {
    let site = Site::start(|path| match path {
        "/" => html("<title>Home</title><nav>menu</nav><h1>Hello</h1><p>A <a href=/next>link</a>.</p>"),
        "/long" => html(&format!("<p>{}</p>", "word ".repeat(10_000))),
        "/data" => response(
            "203 Non-Authoritative",
            "Content-Type: application/json\r\n",
            "{\"a\": 1}",
        ),
        "/untyped" => response("200 OK", "Content-Type: \r\n", "just text"),
        "/compressed" => response(
            "200 OK",
            "Content-Type: text/html\r\nContent-Encoding: gzip\r\n",
            "noise",
        ),
        "/broken" => response("503 Service Unavailable", "Content-Type: image/png\r\n", "PNG"),
        _ => response("404 Not Found", "Content-Type: text/html\r\n", "<h1>Nothing here</h1>"),
    })
    .await;
    let host = site.granted().await;
    let page = host.value("fetch_page", json!({"url": site.url("/")})).await;
    assert_eq!((&page["title"], &page["status"]), (&json!("Home"), &json!(200)));
    let expected = format!("# Hello\n\nA [link]({}).", site.url("/next"));
    assert_eq!(page["text"], expected);
    let source = host
        .value("fetch_page", json!({"url": site.url("/"), "extent": "source"}))
        .await;
    assert!(source["text"].as_str().unwrap().starts_with("<title>"), "{source}");
    let first = host.value("fetch_page", json!({"url": site.url("/long")})).await;
    assert_eq!(first["next_offset"], 20_000);
    let rest = json!({"url": site.url("/long"), "offset": 20_000, "length_max": 100_000});
    let rest = host.value("fetch_page", rest).await;
    assert_eq!(
        (&rest["next_offset"], &rest["total_chars"]),
        (&json!(null), &first["total_chars"])
    );
    let data = host.value("fetch_page", json!({"url": site.url("/data")})).await;
    assert_eq!((&data["text"], &data["status"]), (&json!("{\"a\": 1}"), &json!(203)));
    let untyped = host.value("fetch_page", json!({"url": site.url("/untyped")})).await;
    assert_eq!(
        (&untyped["text"], &untyped["content_type"]),
        (&json!("just text"), &json!("text/plain"))
    );
    let compressed = host
        .failure("fetch_page", json!({"url": site.url("/compressed")}))
        .await;
    assert!(compressed.contains("sent a compressed body (gzip)"), "{compressed}");
    let broken = host.failure("fetch_page", json!({"url": site.url("/broken")})).await;
    assert!(
        broken.contains("status 503") && !broken.contains("content type"),
        "{broken}"
    );
    let missing = host.failure("fetch_page", json!({"url": site.url("/missing")})).await;
    assert!(
        missing.contains("status 404") && missing.contains("Nothing here"),
        "{missing}"
    );
}

#[tokio::test]
async fn only_granted_hosts_are_requested_also_by_redirects() {
    let other = Site::start(|_| html("<p>inside</p>")).await;
    let to_other = other.url("/inside");
    let site = Site::start(move |path| match path {
        "/away" => response("302 Found", &format!("Location: {to_other}\r\n"), ""),
        "/file" => response("302 Found", "Location: file:///etc/passwd\r\n", ""),
        "/circle" => response("302 Found", "Location: /circle\r\n", ""),
        "/here" => response("301 Moved Permanently", "Location: /there\r\n", ""),
        _ => html("<p>there</p>"),
    })
    .await;
    let ungranted = Host::without_grant("http_fetch").await;
    let error = ungranted.failure("fetch_page", json!({"url": site.url("/")})).await;
    assert!(error.contains("it is not granted"), "{error}");
    assert_eq!(site.requested(), [""; 0]);
    let host = site.granted().await;
    let page = host.value("fetch_page", json!({"url": site.url("/here")})).await;
    assert_eq!(
        (&page["url"], &page["text"]),
        (&json!(site.url("/there")), &json!("there"))
    );
    for (path, reason) in [
        ("/away", "may not send"),
        ("/file", "not an http"),
        ("/circle", "redirects"),
    ] {
        let error = host.failure("fetch_page", json!({"url": site.url(path)})).await;
        assert!(error.contains(reason), "{path}: {error}");
    }
    assert_eq!(
        other.requested(),
        [""; 0],
        "a redirect to a host without a grant sends nothing"
    );
}

#[tokio::test]
async fn unreadable_and_hostile_pages_are_refused_or_cleaned() {
    let site = Site::start(|path| match path {
        "/image" => response("200 OK", "Content-Type: image/png\r\n", "PNG"),
        "/deep" => html(&"<div>".repeat(3_000)),
        "/huge" => html(&"x".repeat(9 << 20)),
        _ => html("<p>a\u{1b}]0;title\u{7}b</p><a href='javascript:x'>c</a><script>d</script>"),
    })
    .await;
    let host = site.granted().await;
    for (path, reason) in [("/image", "image/png"), ("/deep", "nested"), ("/huge", "larger than")] {
        let error = host.failure("fetch_page", json!({"url": site.url(path)})).await;
        assert!(error.contains(reason), "{path}: {error}");
    }
    let page = host.value("fetch_page", json!({"url": site.url("/")})).await;
    let text = page["text"].as_str().unwrap();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    assert!(!text.contains("javascript") && !text.contains('d'), "{text:?}");
}
