//! Attempts on the network.

use wasip3::http::client::send;
use wasip3::http::types::{ErrorCode, Fields, Method, Request, Response, Scheme};
use wasip3::sockets::ip_name_lookup::resolve_addresses;
use wasip3::sockets::types::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, TcpSocket};
use wasip3::{wit_future, wit_stream};
use wit_bindgen::spawn_local;

use crate::exports::test::river::attempts::Reply;

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

pub(crate) async fn fetch(
    method: String,
    scheme: String,
    authority: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
) -> Result<Reply, String> {
    let fields = Fields::new();
    for (name, value) in headers {
        fields.append(&name, value.as_bytes()).map_err(|error| format!("header: {error:?}"))?;
    }
    let (trailers, no_trailers) = wit_future::new(|| Ok(None));
    drop(trailers);
    let contents = (!body.is_empty()).then(|| {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move {
            writer.write_all(body.into_bytes()).await;
        });
        reader
    });
    let (request, _sent) = Request::new(fields, contents, no_trailers, None);
    let method = match method.as_str() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        _ => Method::Other(method),
    };
    let scheme = match scheme.as_str() {
        "" => None,
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        _ => Some(Scheme::Other(scheme)),
    };
    request.set_method(&method).map_err(|()| "method refused")?;
    request.set_scheme(scheme.as_ref()).map_err(|()| "scheme refused")?;
    request.set_authority(Some(&authority)).map_err(|()| "authority refused")?;
    request.set_path_with_query(Some(&path)).map_err(|()| "path refused")?;
    answer(send(request).await.map_err(text)?).await
}

async fn answer(response: Response) -> Result<Reply, String> {
    let status = response.get_status_code();
    let headers = response.get_headers().copy_all();
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let (done, outcome) = wit_future::new(|| Ok(()));
    drop(done);
    let (stream, trailers) = Response::consume_body(response, outcome);
    let body = stream.collect().await;
    let end: Result<_, ErrorCode> = trailers.await;
    end.map_err(text)?;
    Ok(Reply {
        status,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

pub(crate) async fn hammer(authority: String, times: u32) -> u32 {
    let mut count = 0;
    for _ in 0..times {
        let fetched = fetch(
            "GET".into(),
            "http".into(),
            authority.clone(),
            "/".into(),
            Vec::new(),
            String::new(),
        );
        count += u32::from(fetched.await.is_ok());
    }
    count
}

pub(crate) async fn connect(port: u16) -> Result<String, String> {
    let socket = TcpSocket::create(IpAddressFamily::Ipv4).map_err(text)?;
    let address = Ipv4SocketAddress {
        port,
        address: (127, 0, 0, 1),
    };
    socket.connect(IpSocketAddress::Ipv4(address)).await.map_err(text)?;
    Ok("connected".to_owned())
}

pub(crate) async fn lookup(name: String) -> Result<String, String> {
    let found = resolve_addresses(name).await.map_err(text)?;
    Ok(text(found))
}
