//! A tool in eight lines and an entity in fifteen.

/// Greet a person by name.
#[toolwit_guest::tool]
fn greet(name: &str) -> Result<String, &'static str> {
    match name.trim() {
        "" => Err("the name is empty"),
        name => Ok(format!("Hello, {name}!")),
    }
}

#[toolwit_guest::tools(package = "test:counting")]
mod counters {
    /// A counter that keeps its value between calls.
    pub struct Counter(i64);

    impl Counter {
        /// Create a counter.
        pub fn new(start: i64) -> Self {
            Self(start)
        }
        /// Add to the counter. Returns its new value.
        pub fn add(&mut self, amount: i64) -> i64 {
            self.0 += amount;
            self.0
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn tools_are_tested_natively() {
        assert_eq!(crate::greet("Ada").as_deref(), Ok("Hello, Ada!"));
        assert_eq!(crate::counters::Counter::new(40).add(2), 42);
    }
}
