//! Types that a tool cannot take or return, recognised by their form or name, with the reason for each.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Error, Ident, Result, Type, TypePath, TypeReference};

/// Names of futures and of types that wrap them.
const FUTURES: [&str; 6] = ["Future", "BoxFuture", "LocalBoxFuture", "JoinHandle", "Pin", "Poll"];

/// Names of streams and channels.
const STREAMS: [&str; 7] = [
    "Stream",
    "BoxStream",
    "Receiver",
    "UnboundedReceiver",
    "Sender",
    "UnboundedSender",
    "Sink",
];

/// Names of the traits of functions and closures.
const FUNCTIONS: [&str; 4] = ["Fn", "FnMut", "FnOnce", "AsyncFn"];

/// Rejects a parameter of an unsupported type.
pub(crate) fn check_parameter(name: &Ident, kind: &Type) -> Result<()> {
    match find_fault(kind) {
        Some(fault) => Err(unsupported_type(kind, &format!("`{name}`"), fault)),
        None => Ok(()),
    }
}

/// Rejects a result of an unsupported type.
pub(crate) fn check_output(kind: &Type) -> Result<()> {
    match find_fault(kind) {
        Some(fault) => Err(unsupported_type(kind, "the result", fault)),
        None => Ok(()),
    }
}

fn unsupported_type(kind: &Type, subject: &str, fault: String) -> Error {
    Error::new_spanned(kind, format!("{subject} cannot be of this type: {fault}"))
}

/// Returns the reason why a tool cannot take or return a type, or `None` if no unsupported part is found.
fn find_fault(kind: &Type) -> Option<String> {
    let mut search = Search::default();
    search.visit_type(kind);
    search.fault
}

/// A search of a type for its first unsupported part, outermost first. The bounds of `impl` and `dyn` types come before the
/// type itself.
#[derive(Default)]
struct Search {
    fault: Option<String>,
}

impl Search {
    /// Sets the fault, unless one was found before.
    fn set_fault(&mut self, fault: impl Into<String>) {
        self.fault.get_or_insert_with(|| fault.into());
    }
}

impl<'ast> Visit<'ast> for Search {
    fn visit_type(&mut self, kind: &'ast Type) {
        match kind {
            Type::BareFn(_) => self.set_fault("a function cannot be represented in JSON"),
            Type::Ptr(_) => self.set_fault("a pointer cannot be represented in JSON"),
            Type::Never(_) => self.set_fault("it has no value"),
            Type::Infer(_) => self.set_fault("write the full type, from which the schema is derived"),
            Type::ImplTrait(_) | Type::TraitObject(_) => {
                visit::visit_type(self, kind);
                self.set_fault("the schema needs one concrete type");
            }
            Type::Reference(reference) => self.check_reference(reference),
            Type::Path(path) => self.check_path(path),
            _ => visit::visit_type(self, kind),
        }
    }

    fn visit_trait_bound(&mut self, bound: &'ast syn::TraitBound) {
        if let Some(last) = bound.path.segments.last() {
            self.check_name(&last.ident);
        }
    }
}

impl Search {
    fn check_reference(&mut self, reference: &TypeReference) {
        if reference
            .lifetime
            .as_ref()
            .is_some_and(|lifetime| lifetime.ident == "static")
        {
            return;
        }
        let element = &reference.elem;
        match &**element {
            Type::Path(path) if path.path.is_ident("str") => self.set_fault("it is borrowed; take `String`"),
            Type::Slice(slice) => {
                let item = slice.elem.to_token_stream();
                self.set_fault(format!("it is borrowed; take `Vec<{item}>`"));
            }
            _ => self.set_fault("it is borrowed; take the value itself"),
        }
    }

    fn check_path(&mut self, path: &TypePath) {
        let Some(last) = path.path.segments.last() else { return };
        if path.qself.is_some() {
            self.set_fault("the schema needs one concrete type; write the type that the path stands for");
            return;
        }
        if path.path.segments[0].ident == "Self" {
            self.set_fault("`Self` cannot be named in a schema; write the type's name");
            return;
        }
        self.check_name(&last.ident);
        visit::visit_type_path(self, path);
    }

    fn check_name(&mut self, name: &Ident) {
        let name = name.to_string();
        if FUTURES.contains(&name.as_str()) {
            self.set_fault(
                "a future cannot be represented in JSON; take the value itself, or make the function `async`",
            );
        } else if STREAMS.contains(&name.as_str()) {
            self.set_fault("a stream cannot be represented in JSON; take a `Vec`");
        } else if FUNCTIONS.contains(&name.as_str()) {
            self.set_fault("a function cannot be represented in JSON");
        }
    }
}
