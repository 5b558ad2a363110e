//! Hostile servers and resolvers on loopback.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use toolwit::sandbox::{Resolve, ResolveFuture};

/// A server that gives every request the same response, and records the requests.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    endless_bytes: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A response: bytes, possibly followed by endless ones.
#[derive(Clone)]
pub(crate) enum Answer {
    /// These bytes, then the end of the connection.
    Fixed(Vec<u8>),
    /// The request, echoed as the body.
    Echo,
    /// A fixed response, as soon as a permit is available.
    Held(Arc<Semaphore>),
    /// Some bytes, then others repeated endlessly.
    Endless(Vec<u8>, Vec<u8>),
    /// Some bytes, then an open connection without data.
    Silence(Vec<u8>),
}

impl Answer {
    pub(crate) fn text(body: &str) -> Self {
        Self::Fixed(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
    }
}

impl Server {
    pub(crate) async fn start(answer: Answer) -> Self {
        Self::start_with(answer, None).await
    }

    /// Starts a server that requires TLS. Data without TLS is not recorded as a request.
    pub(crate) async fn start_tls(answer: Answer, config: ServerConfig) -> Self {
        Self::start_with(answer, Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(answer: Answer, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, connections) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<AtomicUsize>::default());
        let (recorded, counted) = (requests.clone(), connections.clone());
        let endless_bytes = Arc::<AtomicU64>::default();
        let sent = endless_bytes.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (answer, recorded, tls) = (answer.clone(), recorded.clone(), tls.clone());
                let sent = sent.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, recorded, sent).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answer, recorded, sent).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            port,
            requests,
            connections,
            endless_bytes,
            task,
        }
    }

    /// The number of connections, including those without a request.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The number of bytes that [`Answer::Endless`] has sent after its first ones.
    pub(crate) fn endless_bytes(&self) -> u64 {
        self.endless_bytes.load(Ordering::SeqCst)
    }

    /// The requests, in order.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    requests: Arc<Mutex<Vec<String>>>,
    sent: Arc<AtomicU64>,
) {
    let mut received = Vec::new();
    let mut piece = [0; 8192];
    while !received.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => received.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&received).into_owned();
    requests.lock().unwrap().push(request.clone());
    match answer {
        Answer::Fixed(bytes) => {
            let _ = stream.write_all(&bytes).await;
        }
        Answer::Echo => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nX-Echo: {}\r\nContent-Length: {}\r\n\r\n",
                first_secret(&request),
                request.len()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            // In small pieces, so that a searched text spans several.
            for piece in request.as_bytes().chunks(5) {
                if stream.write_all(piece).await.and(stream.flush().await).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
        Answer::Held(gate) => {
            gate.acquire().await.unwrap().forget();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        }
        Answer::Endless(head, rest) => {
            if stream.write_all(&head).await.is_ok() {
                while stream.write_all(&rest).await.is_ok() {
                    sent.fetch_add(rest.len() as u64, Ordering::SeqCst);
                }
            }
        }
        Answer::Silence(head) => {
            let _ = stream.write_all(&head).await;
            // Until the peer closes the connection.
            while matches!(stream.read(&mut piece).await, Ok(count) if count > 0) {}
        }
    }
}

/// The value of the first authorization header of a request.
fn first_secret(request: &str) -> &str {
    request
        .lines()
        .find_map(|line| line.strip_prefix("authorization: "))
        .unwrap_or("none")
}

/// A resolver with prepared answers, used in order; the last one repeats.
#[derive(Debug)]
pub(crate) struct ScriptedResolver {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    pub(crate) queries: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    pub(crate) fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Self {
            answers: Mutex::new(answers.iter().map(parse).collect()),
            queries: Mutex::default(),
        })
    }
}

impl Resolve for ScriptedResolver {
    fn resolve(&self, name: &str) -> ResolveFuture {
        self.queries.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 {
            answers.pop_front()
        } else {
            answers.front().cloned()
        };
        Box::pin(async move { Ok(answer.unwrap_or_default()) })
    }
}
