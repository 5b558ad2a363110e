//! A guest of the contract of ACT that makes requests through WASI 0.3, as components of the SDK of ACT do.

wit_bindgen::generate!({ path: "wit", world: "understudy", generate_all });

use act::core::types::{Error, LocalizedString};
use act::tools::types::{ContentPart, ToolDefinition};
use exports::act::tools::tool_provider::{Guest, ListToolsResponse, ToolEvent, ToolResult};
use wasip3::http::client::send;
use wasip3::http::types::{Fields, Request, Response, Scheme};
use wasip3::wit_future;

struct Understudy;

export!(Understudy);

type Metadata = Vec<(String, Vec<u8>)>;

/// Arguments in CBOR are these bytes, one with the length of the text, and the text.
const AUTHORITY: &[u8] = b"\xa1\x69authority";

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"authority": {"type": "string", "maxLength": 23}}, "required": ["authority"]}"#;

fn plain(text: &str) -> LocalizedString {
    LocalizedString::Plain(text.to_owned())
}

async fn fetch(authority: &str) -> Result<String, String> {
    let (trailers, no_trailers) = wit_future::new(|| Ok(None));
    drop(trailers);
    let (request, _sent) = Request::new(Fields::new(), None, no_trailers, None);
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme refused")?;
    request.set_authority(Some(authority)).map_err(|()| "authority refused")?;
    request.set_path_with_query(Some("/")).map_err(|()| "path refused")?;
    let response = send(request).await.map_err(|error| format!("{error:?}"))?;
    let (done, outcome) = wit_future::new(|| Ok(()));
    drop(done);
    let (stream, trailers) = Response::consume_body(response, outcome);
    let body = stream.collect().await;
    trailers.await.map_err(|error| format!("{error:?}"))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

impl Guest for Understudy {
    async fn list_tools(_metadata: Metadata) -> Result<ListToolsResponse, Error> {
        let fetch = ToolDefinition {
            name: "fetch".to_owned(),
            description: plain("Requests the page of a server."),
            parameters_schema: SCHEMA.to_owned(),
            metadata: Vec::new(),
        };
        Ok(ListToolsResponse {
            metadata: Vec::new(),
            tools: vec![fetch],
        })
    }

    async fn call_tool(_name: String, arguments: Vec<u8>, _metadata: Metadata) -> ToolResult {
        let text = arguments.strip_prefix(AUTHORITY).and_then(|text| text.get(1..));
        let authority = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
        ToolResult::Immediate(vec![match fetch(&authority).await {
            Ok(body) => ToolEvent::Content(ContentPart {
                data: body.into_bytes(),
                mime_type: Some("text/plain".to_owned()),
                metadata: Vec::new(),
            }),
            Err(message) => ToolEvent::Error(Error {
                kind: "std:internal".to_owned(),
                message: plain(&message),
                metadata: Vec::new(),
            }),
        }])
    }
}
