//! Async functions, streams and futures.

use wasip3::clocks::monotonic_clock::wait_for;
use wit_bindgen::{FutureReader, StreamReader, spawn_local};

use crate::exports::test::river::flow::Guest;
use crate::{River, wit_future, wit_stream};

/// Writes items, then closes the stream.
macro_rules! stream_of {
    ($items:expr) => {{
        let (mut writer, reader) = wit_stream::new();
        let items = $items;
        spawn_local(async move {
            writer.write_all(items).await;
        });
        reader
    }};
}

impl Guest for River {
    async fn add(a: u32, b: u32) -> u32 {
        wait_for(1_000_000).await;
        a.wrapping_add(b)
    }

    async fn wait(ms: u64) {
        wait_for(ms * 1_000_000).await;
    }

    async fn text(text: String, times: u32) -> StreamReader<u8> {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move {
            for _ in 0..times {
                if !writer.write_all(text.clone().into_bytes()).await.is_empty() {
                    return;
                }
            }
        });
        reader
    }

    async fn bytes() -> StreamReader<u8> {
        stream_of!(vec![0xff, 0xfe, 0])
    }

    async fn count(to: u32) -> StreamReader<u32> {
        stream_of!((1..=to).collect::<Vec<u32>>())
    }

    async fn words(text: String) -> StreamReader<String> {
        stream_of!(text.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
    }

    async fn promise(text: Option<String>) -> FutureReader<Result<String, String>> {
        let (writer, reader) = wit_future::new(|| Err("dropped".to_owned()));
        spawn_local(async move {
            wait_for(1_000_000).await;
            let _ = writer.write(text.ok_or_else(|| "there is no text".to_owned())).await;
        });
        reader
    }

    async fn both(text: String) -> (StreamReader<u8>, FutureReader<u32>) {
        let (mut writer, reader) = wit_stream::new();
        let (length, promised) = wit_future::new(|| 0);
        spawn_local(async move {
            let _ = length.write(text.len() as u32).await;
            writer.write_all(text.into_bytes()).await;
        });
        (reader, promised)
    }

    async fn perhaps(text: Option<String>) -> Result<StreamReader<u8>, String> {
        let text = text.ok_or_else(|| "there is no text".to_owned())?;
        Ok(stream_of!(text.into_bytes()))
    }

    async fn endless() -> StreamReader<u8> {
        let (mut writer, reader) = wit_stream::new();
        spawn_local(async move { while writer.write_all(vec![b'x'; 64 << 10]).await.is_empty() {} });
        reader
    }

    async fn stuck() -> StreamReader<u8> {
        let (writer, reader) = wit_stream::new();
        std::mem::forget(writer);
        reader
    }

    async fn drain(data: StreamReader<u8>) -> u64 {
        data.collect().await.len() as u64
    }

    async fn sum(numbers: Vec<StreamReader<u32>>, more: Option<StreamReader<u32>>) -> u64 {
        let mut sum = 0;
        for stream in numbers.into_iter().chain(more) {
            sum += stream.collect().await.into_iter().map(u64::from).sum::<u64>();
        }
        sum
    }

    async fn relay(
        promised: FutureReader<Result<String, String>>,
        words: StreamReader<String>,
    ) -> (Result<String, String>, StreamReader<String>) {
        (promised.await, words)
    }

    async fn ignore(_data: StreamReader<u8>) -> String {
        "not read".to_owned()
    }

    async fn many() -> Vec<StreamReader<u8>> {
        Vec::new()
    }
}
