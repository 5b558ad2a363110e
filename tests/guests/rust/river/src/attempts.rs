//! Attempts to access the host. Those on files and on the network are in modules of their own.

use wasip3::cli::environment::get_environment;
use wasip3::cli::stdout::write_via_stream;
use wasip3::clocks::{monotonic_clock, system_clock};
use wasip3::random::random::get_random_bytes;
use wit_bindgen::StreamReader;

use crate::exports::test::river::attempts::{Guest, Reply};
use crate::{River, files, web};

impl Guest for River {
    fn environment() -> Vec<(String, String)> {
        get_environment()
    }

    fn time() -> (i64, u64) {
        (system_clock::now().seconds, monotonic_clock::now())
    }

    fn random() -> Vec<u8> {
        get_random_bytes(16)
    }

    async fn say(text: String) -> String {
        let (mut writer, reader) = wasip3::wit_stream::new();
        let written = write_via_stream(reader);
        writer.write_all(text.clone().into_bytes()).await;
        drop(writer);
        let _ = written.await;
        text
    }

    async fn read(path: String) -> Result<String, String> {
        files::read(&path).await
    }

    async fn write(path: String, offset: u64, text: String) -> Result<String, String> {
        files::write(&path, offset, text.into_bytes()).await
    }

    async fn fill(path: String, bytes: u64, streams: u32) -> Result<u64, String> {
        files::fill(&path, bytes, streams).await
    }

    async fn entries(path: String) -> Result<Vec<String>, String> {
        files::entries(&path).await
    }

    async fn hoard(path: String, streams: u32) -> Result<u32, String> {
        files::hoard(&path, streams).await
    }

    fn brood(streams: u32) -> u32 {
        let made: Vec<(_, StreamReader<u8>)> = (0..streams).map(|_| crate::wit_stream::new::<u8>()).collect();
        made.len() as u32
    }

    async fn change(how: String, path: String, other: String) -> Result<String, String> {
        files::change(&how, &path, &other).await
    }

    async fn fetch(
        method: String,
        scheme: String,
        authority: String,
        path: String,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Result<Reply, String> {
        web::fetch(method, scheme, authority, path, headers, body).await
    }

    async fn hammer(authority: String, times: u32) -> u32 {
        web::hammer(authority, times).await
    }

    async fn connect(port: u16) -> Result<String, String> {
        web::connect(port).await
    }

    async fn lookup(name: String) -> Result<String, String> {
        web::lookup(name).await
    }
}
