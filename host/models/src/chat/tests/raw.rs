//! A TCP server for tests of malformed responses, which sends exactly the given bytes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The first byte of a TLS handshake.
pub(super) const TLS_HANDSHAKE: u8 = 0x16;

/// The action of the server after it has read a request.
#[derive(Clone, Copy)]
pub(super) enum ServerAction {
    /// Sends these bytes and closes the connection.
    Send(&'static str),
    /// Sends the first bytes, then repeats the second bytes until the client disconnects.
    Flood(&'static str, &'static str),
    /// Sends these bytes and keeps the connection open.
    SendAndHang(&'static str),
    /// Sends nothing and keeps the connection open.
    Hang,
}

/// A server that performs one action per connection. Dropping the server stops it.
pub(super) struct RawServer {
    pub(super) url: String,
    /// Receives the bytes of each request.
    pub(super) requests: mpsc::UnboundedReceiver<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RawServer {
    pub(super) async fn start(actions: Vec<ServerAction>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut open_streams = Vec::new();
            for action in actions {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = sender.send(read_request(&mut stream).await);
                match action {
                    ServerAction::Send(bytes) => {
                        let _ = stream.write_all(bytes.as_bytes()).await;
                    }
                    ServerAction::Flood(head, piece) => {
                        let _ = stream.write_all(head.as_bytes()).await;
                        while stream.write_all(piece.as_bytes()).await.is_ok() {}
                    }
                    ServerAction::SendAndHang(bytes) => {
                        let _ = stream.write_all(bytes.as_bytes()).await;
                        open_streams.push(stream);
                    }
                    ServerAction::Hang => open_streams.push(stream),
                }
            }
            std::future::pending::<()>().await;
        });
        Self { url, requests, task }
    }
}

/// Reads a request to the end of its body. Closing a connection with unread bytes would reset the connection. Of a TLS
/// handshake, reads only the first bytes.
async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let count = stream.read(&mut buffer).await.unwrap_or_default();
        request.extend_from_slice(&buffer[..count]);
        if count == 0 || request.first() == Some(&TLS_HANDSHAKE) {
            return request;
        }
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .split("content-length: ")
            .nth(1)
            .and_then(|value| value.lines().next());
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or_default();
        if body.len() >= length {
            return request;
        }
    }
}
