//! Tools and an entity that are written with the macros and helpers of `toolwit-guest`.

/// Translate a number of inches to millimetres.
#[toolwit_guest::tool]
fn millimetres(/** The number of inches. */ inches: f64) -> f64 {
    inches * 25.4
}

#[toolwit_guest::tools]
mod workshop {
    //! Plan the repairs of bicycles.

    use std::cell::Cell;

    use toolwit_guest::{ToolResult, blackboard, context, http::Request, output, tools};

    /// An amount of money, in cents.
    type Cents = u64;

    /// A part of a bicycle.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub struct Part {
        /// The name of the part.
        pub name: String,
        /// The price in cents.
        pub price: Cents,
        /// The condition, if it was checked.
        pub condition: Option<Condition>,
        /// The kind of the part.
        pub r#type: Kind,
    }

    /// The condition of a part.
    #[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
    pub enum Condition {
        /// It can be used.
        Good,
        /// It must be replaced.
        WornOut,
    }

    /// The kind of a part.
    #[derive(Clone, Debug, PartialEq, serde::Serialize)]
    pub enum Kind {
        /// A wheel, with its diameter in inches.
        Wheel(u8),
        /// A chain, with the number of its links and its width.
        Chain(u16, f32),
        /// Any other part.
        Other,
    }

    /// The reason why a repair was refused.
    pub enum RepairError {
        /// The part is not in the repair.
        UnknownPart(String),
        /// The repair has no parts.
        Empty,
    }

    /// Returns the part as it is.
    pub fn same_part(part: Part) -> Part {
        part
    }

    /// Sum up the prices of parts.
    ///
    /// @effect read
    pub fn sum(
        /// The parts, in any order.
        parts: &[Part],
        /// The discount in percent, by default 0.
        discount: Option<u32>,
    ) -> Cents {
        let sum: Cents = parts.iter().map(|part| part.price).sum();
        sum * Cents::from(100 - discount.unwrap_or(0).min(100)) / 100
    }

    /// Find the parts whose name contains the text; without a text, all of them.
    pub fn find<'a>(names: Vec<String>, query: Option<&str>) -> Vec<(u32, String)> {
        let query = query.unwrap_or_default();
        let numbered = (1..).zip(names);
        numbered.filter(|(_, name)| name.contains(query)).collect()
    }

    /// A repair. It keeps its parts between calls.
    pub struct Repair {
        number: u32,
        parts: Vec<Part>,
    }

    thread_local! {
        static NUMBERS: Cell<u32> = const { Cell::new(0) };
    }

    impl Repair {
        /// Start a repair with its first part.
        pub fn new(part: Part) -> Self {
            Self { number: next_number(), parts: vec![part] }
        }

        /// Start a repair without parts, if there is a bicycle.
        pub fn without_parts(bicycle: bool) -> Option<Self> {
            bicycle.then(|| Self { number: next_number(), parts: Vec::new() })
        }

        pub fn id(&self) -> String {
            format!("r-{}", self.number)
        }

        /// Add a part to the repair. Returns the number of parts.
        pub fn add(&mut self, part: Part) -> u32 {
            self.parts.push(part);
            self.count()
        }

        /// Remove a part from the repair.
        pub fn remove(&mut self, name: &str) -> Result<Part, RepairError> {
            let index = self.parts.iter().position(|part| part.name == name);
            let index = index.ok_or_else(|| RepairError::UnknownPart(name.to_owned()))?;
            Ok(self.parts.remove(index))
        }

        /// List the parts of the repair.
        pub fn parts(&self) -> &[Part] {
            &self.parts
        }

        fn count(&self) -> u32 {
            u32::try_from(self.parts.len()).unwrap_or(u32::MAX)
        }
    }

    fn next_number() -> u32 {
        NUMBERS.set(NUMBERS.get() + 1);
        NUMBERS.get()
    }

    /// Compare two repairs: is the first one cheaper than the second?
    pub fn is_cheaper(first: &Repair, second: &Repair) -> bool {
        sum(&first.parts, None) < sum(&second.parts, None)
    }

    /// Finish a repair. The invoice is attached, and the repair is consumed.
    pub fn finish(repair: Repair) -> Result<ToolResult, RepairError> {
        if repair.parts.is_empty() {
            return Err(RepairError::Empty);
        }
        let total = sum(&repair.parts, None);
        let result = ToolResult::new(format!("Repair {} costs {total} cents.", repair.id()));
        Ok(result.for_user("Your bicycle is ready.").artifact("invoice", &repair.parts).unwrap_or_default())
    }

    /// Report progress, send a message, and attach the tenant of the conversation.
    pub fn announce(text: &str) -> toolwit_guest::Result<String> {
        output::progress("announcing");
        output::communicate(text);
        let tenant: Option<String> = context::get("tenant")?;
        output::attach("tenant", &tenant)?;
        Ok(tenant.ok_or("there is no tenant")?)
    }

    /// Remember a part on the blackboard, and read it again.
    pub fn remember(name: &str, price: u32) -> toolwit_guest::Result<u32> {
        blackboard::put(name, "price", &price)?;
        let artifact = blackboard::get(name).ok_or("the blackboard has no such object")?;
        Ok(artifact.value()?)
    }

    /// Call a tool with a text, and return its result.
    pub fn relay(tool: &str, text: &str) -> toolwit_guest::Result<String> {
        #[derive(serde::Serialize)]
        struct Arguments<'a> {
            text: &'a str,
        }
        Ok(tools::call(tool, &Arguments { text })?.text().to_owned())
    }

    /// Send the parts to a server as JSON, and return the names that it returns.
    pub fn publish(url: &str, parts: Vec<Part>) -> toolwit_guest::Result<Vec<String>> {
        let request = Request::post(url).query("kind", "part").header("x-workshop", "1");
        Ok(request.json(&parts)?.send()?.json()?)
    }
}
