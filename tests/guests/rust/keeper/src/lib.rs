//! A guest with state.

wit_bindgen::generate!({ path: "wit", world: "keeper", generate_all });

use exports::test::keeper::shelf;
use wasi::keyvalue::store::{Bucket, open};

use exports::test::keeper::jars::{Guest, GuestJar};

struct Keeper;

struct Jar(String);

impl Guest for Keeper {
    type Jar = Jar;
}

impl GuestJar for Jar {
    fn new(content: String) -> Self {
        Self(content)
    }

    fn id(&self) -> String {
        "the-jar".to_owned()
    }

    fn look(&self, path: String) -> Result<String, String> {
        let file = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        Ok(format!("{} and {file}", self.0))
    }

    fn variable(&self, name: String) -> Option<String> {
        std::env::var(name).ok()
    }
}

impl shelf::Guest for Keeper {
    fn remember(bucket: String, key: String, value: String) -> Result<bool, String> {
        let bucket = open_bucket(&bucket)?;
        bucket.set(&key, value.as_bytes()).map_err(error_text)?;
        bucket.exists(&key).map_err(error_text)
    }

    fn recall(bucket: String, key: String) -> Result<Option<String>, String> {
        let value = open_bucket(&bucket)?.get(&key).map_err(error_text)?;
        Ok(value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn forget(bucket: String, key: String) -> Result<Vec<String>, String> {
        let bucket = open_bucket(&bucket)?;
        bucket.delete(&key).map_err(error_text)?;
        Ok(bucket.list_keys(None).map_err(error_text)?.keys)
    }

    fn settings() -> Vec<(String, String)> {
        wasi::config::store::get_all().unwrap_or_default()
    }
}

fn open_bucket(bucket: &str) -> Result<Bucket, String> {
    open(bucket).map_err(error_text)
}

fn error_text(error: wasi::keyvalue::store::Error) -> String {
    format!("{error:?}")
}

export!(Keeper);
