//! An HTTP server for tests: a function answers each request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request that the server received.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    pub(crate) message: Value,
}

/// The HTTP response to a request.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Whether the body never ends.
    is_endless: bool,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            is_endless: false,
        }
    }

    /// Creates a JSON-RPC response with a result.
    pub(crate) fn result(request: &Request, result: &Value) -> Self {
        Self::json(&json!({"jsonrpc": "2.0", "id": request.message["id"], "result": result}))
    }

    /// Creates a JSON-RPC error response with an HTTP status and an error code.
    pub(crate) fn refuse(request: &Request, status: u16, code: i32) -> Self {
        let error =
            json!({"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": code, "message": "refused"}});
        Self::json_status(status, &error)
    }

    pub(crate) fn json(message: &Value) -> Self {
        Self {
            body: message.to_string().into_bytes(),
            ..Self::status(200).with_header("content-type", "application/json")
        }
    }

    /// Creates a response with a text of a media type.
    pub(crate) fn text(media_type: &str, text: &str) -> Self {
        Self {
            body: text.as_bytes().to_vec(),
            ..Self::status(200).with_header("content-type", media_type)
        }
    }

    /// Creates a response with JSON and an HTTP status.
    pub(crate) fn json_status(status: u16, message: &Value) -> Self {
        Self {
            status,
            ..Self::json(message)
        }
    }

    /// Creates a response with server-sent events.
    pub(crate) fn events(events: &str) -> Self {
        Self {
            body: events.as_bytes().to_vec(),
            ..Self::status(200).with_header("content-type", "text/event-stream")
        }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Makes the body endless: it continues with `0` characters.
    pub(crate) fn endless(mut self) -> Self {
        self.is_endless = true;
        self
    }
}

type Handler = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

/// A running server. It ends with the test.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Request>>>,
    task: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    /// Starts a server. A request for which the function returns nothing is never answered.
    pub(crate) async fn start(answer: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Handler> = Arc::new(answer);
        let log = received.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, log) = (answer.clone(), log.clone());
                tokio::spawn(async move { drop(serve(stream, &*answer, &log).await) });
            }
        });
        Self { url, received, task }
    }

    /// Returns the received requests in order.
    pub(crate) fn received(&self) -> Vec<Request> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the requests with this JSON-RPC method.
    pub(crate) fn received_of(&self, method: &str) -> Vec<Request> {
        let received = self.received().into_iter();
        received.filter(|request| request.message["method"] == method).collect()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: TcpStream, answer: &Handler, log: &Mutex<Vec<Request>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let mut words = line.split(' ').map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default();
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let message = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request {
            method,
            path,
            headers,
            body: String::from_utf8_lossy(&body).into_owned(),
            message,
        };
        log.lock().unwrap().push(request.clone());
        let Some(reply) = answer(&request) else {
            std::future::pending::<()>().await;
            return Ok(());
        };
        write(&mut stream, &reply).await?;
    }
}

async fn write(stream: &mut BufReader<TcpStream>, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !reply.is_endless {
        head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&reply.body).await?;
    stream.flush().await?;
    if !reply.is_endless {
        return Ok(());
    }
    loop {
        stream.write_all(&[b'0'; 64 << 10]).await?;
    }
}

/// Answers like a server of revision 2025-06-18, which begins with a handshake, without session ids. The tool `echo` returns its text.
pub(crate) fn handshake(request: &Request) -> Option<Reply> {
    if request.method != "POST" {
        return Some(Reply::status(405));
    }
    Some(match request.message["method"].as_str()? {
        "initialize" => Reply::result(
            request,
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"},
            }),
        ),
        "tools/list" => Reply::result(request, &tools()),
        "tools/call" => Reply::result(request, &echoed(request)),
        method if method.starts_with("notifications/") => Reply::status(202),
        _ => Reply::refuse(request, 400, -32601),
    })
}

/// Answers like a server of revision 2026-07-28, in which each request is independent.
pub(crate) fn stateless(request: &Request) -> Option<Reply> {
    if request.method != "POST" {
        return Some(Reply::status(405));
    }
    if request.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] != "2026-07-28" {
        return Some(Reply::refuse(request, 400, -32022));
    }
    Some(match request.message["method"].as_str()? {
        "server/discover" => Reply::result(
            request,
            &json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "ttlMs": 60_000, "cacheScope": "public",
            }),
        ),
        "tools/list" => {
            let mut list = tools();
            list["resultType"] = json!("complete");
            list["ttlMs"] = json!(0);
            list["cacheScope"] = json!("public");
            Reply::result(request, &list)
        }
        "tools/call" => {
            let mut result = echoed(request);
            result["resultType"] = json!("complete");
            Reply::result(request, &result)
        }
        _ => Reply::refuse(request, 404, -32601),
    })
}

fn tools() -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    json!({"tools": [{"name": "echo", "description": "Returns its text.", "inputSchema": schema}]})
}

pub(crate) fn echoed(request: &Request) -> Value {
    json!({"content": [{"type": "text", "text": request.message["params"]["arguments"]["text"]}]})
}
