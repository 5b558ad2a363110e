//! Attempts on the network.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;
use wasip2::sockets::network::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress};
use wasip2::sockets::{tcp_create_socket, udp_create_socket};

use crate::Probe;
use crate::exports::test::probe::web::{Guest, Reply};

impl Guest for Probe {
    fn fetch(
        method: String,
        scheme: String,
        authority: String,
        path: String,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Result<Reply, String> {
        let fields = Fields::new();
        for (name, value) in headers {
            fields.append(&name, value.as_bytes()).map_err(|error| format!("header: {error}"))?;
        }
        let request = OutgoingRequest::new(fields);
        let method = match method.as_str() {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "CONNECT" => Method::Connect,
            "TRACE" => Method::Trace,
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
        if !body.is_empty() {
            let outgoing = request.body().map_err(|()| "no body")?;
            let stream = outgoing.write().map_err(|()| "no stream")?;
            let response = handle(request, None).map_err(|error| error.to_string())?;
            for piece in body.as_bytes().chunks(4096) {
                stream.blocking_write_and_flush(piece).map_err(|error| format!("body: {error}"))?;
            }
            drop(stream);
            OutgoingBody::finish(outgoing, None).map_err(|error| error.to_string())?;
            return answer(response);
        }
        answer(handle(request, None).map_err(|error| error.to_string())?)
    }

    fn hammer(authority: String, times: u32) -> u32 {
        let fetch = |_: &u32| {
            Self::fetch("GET".into(), "http".into(), authority.clone(), "/".into(), Vec::new(), String::new()).is_ok()
        };
        (0..times).filter(fetch).count() as u32
    }

    fn connect(port: u16) -> Result<String, String> {
        let socket = tcp_create_socket::create_tcp_socket(IpAddressFamily::Ipv4).map_err(|error| error.to_string())?;
        socket.start_connect(&instance_network(), loopback(port)).map_err(|error| error.to_string())?;
        socket.subscribe().block();
        socket.finish_connect().map_err(|error| error.to_string())?;
        Ok("connected".to_owned())
    }

    fn datagram(port: u16) -> Result<String, String> {
        let socket = udp_create_socket::create_udp_socket(IpAddressFamily::Ipv4).map_err(|error| error.to_string())?;
        socket.start_bind(&instance_network(), loopback(0)).map_err(|error| error.to_string())?;
        socket.subscribe().block();
        socket.finish_bind().map_err(|error| error.to_string())?;
        socket.stream(Some(loopback(port))).map_err(|error| error.to_string())?;
        Ok("bound".to_owned())
    }

    fn lookup(name: String) -> Result<String, String> {
        let found = resolve_addresses(&instance_network(), &name).map_err(|error| error.to_string())?;
        found.subscribe().block();
        found.resolve_next_address().map(|address| format!("{address:?}")).map_err(|error| error.to_string())
    }
}

fn loopback(port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (127, 0, 0, 1) })
}

fn answer(response: wasip2::http::types::FutureIncomingResponse) -> Result<Reply, String> {
    response.subscribe().block();
    let response = response.get().ok_or("no response")?.map_err(|()| "taken")?.map_err(|error| error.to_string())?;
    let headers = response.headers().entries();
    let headers = headers.into_iter().map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect();
    let status = response.status();
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(wasip2::io::streams::StreamError::Closed) => break,
            Err(error) => return Err(format!("body: {error}")),
        }
    }
    Ok(Reply { status, headers, body: String::from_utf8_lossy(&bytes).into_owned() })
}
