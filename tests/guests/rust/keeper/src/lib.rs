//! A guest with state.

wit_bindgen::generate!({ path: "wit", world: "keeper" });

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

export!(Keeper);
