//! Checks for types that a tool cannot take or return. The types are recognised by their syntax or name.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{Error, Ident, Result, Type, TypePath, TypeReference};

/// Names of types and traits that occur with futures.
const FUTURES: [&str; 6] = ["Future", "BoxFuture", "LocalBoxFuture", "JoinHandle", "Pin", "Poll"];

/// Names of types and traits of streams and channels.
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
pub(crate) fn check_parameter(name: &Ident, ty: &Type) -> Result<()> {
    match unsupported_reason(ty) {
        Some(reason) => Err(type_error(ty, &format!("`{name}`"), &reason)),
        None => Ok(()),
    }
}

/// Rejects a result of an unsupported type.
pub(crate) fn check_output(ty: &Type) -> Result<()> {
    match unsupported_reason(ty) {
        Some(reason) => Err(type_error(ty, "the result", &reason)),
        None => Ok(()),
    }
}

fn type_error(ty: &Type, subject: &str, reason: &str) -> Error {
    Error::new_spanned(ty, format!("{subject} cannot be of this type: {reason}"))
}

/// Returns the reason why a tool cannot take or return a type, or `None` if no unsupported part is found.
fn unsupported_reason(ty: &Type) -> Option<String> {
    let mut visitor = UnsupportedTypeVisitor::default();
    visitor.visit_type(ty);
    visitor.reason
}

/// Visits a type and the types inside it, and records the reason for the first unsupported one.
///
/// Outer types are checked first. Only the bounds of an `impl` or `dyn` type are checked before the type itself, because
/// they give the more specific reason: `impl Future` is a future.
#[derive(Default)]
struct UnsupportedTypeVisitor {
    reason: Option<String>,
}

impl UnsupportedTypeVisitor {
    /// Sets the reason, unless an earlier reason is set.
    fn set_reason(&mut self, reason: impl Into<String>) {
        self.reason.get_or_insert_with(|| reason.into());
    }
}

impl<'ast> Visit<'ast> for UnsupportedTypeVisitor {
    fn visit_type(&mut self, ty: &'ast Type) {
        match ty {
            Type::BareFn(_) => self.set_reason("a function cannot be represented in JSON"),
            Type::Ptr(_) => self.set_reason("a pointer cannot be represented in JSON"),
            Type::Never(_) => self.set_reason("it has no values"),
            Type::Infer(_) => self.set_reason("write the full type, from which the schema is derived"),
            Type::ImplTrait(_) | Type::TraitObject(_) => {
                visit::visit_type(self, ty);
                self.set_reason("the schema needs one concrete type");
            }
            Type::Reference(reference) => self.check_reference(reference),
            Type::Path(path) => self.check_path(path),
            _ => visit::visit_type(self, ty),
        }
    }

    fn visit_trait_bound(&mut self, bound: &'ast syn::TraitBound) {
        if let Some(last) = bound.path.segments.last() {
            self.check_name(&last.ident);
        }
    }
}

impl UnsupportedTypeVisitor {
    fn check_reference(&mut self, reference: &TypeReference) {
        if reference
            .lifetime
            .as_ref()
            .is_some_and(|lifetime| lifetime.ident == "static")
        {
            // A tool can return a `&'static str`.
            return;
        }
        match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => self.set_reason("it is borrowed; use `String`"),
            Type::Slice(slice) => {
                let item = slice.elem.to_token_stream();
                self.set_reason(format!("it is borrowed; use `Vec<{item}>`"));
            }
            _ => self.set_reason("it is borrowed; use the value itself"),
        }
    }

    fn check_path(&mut self, path: &TypePath) {
        let Some(last) = path.path.segments.last() else { return };
        if path.qself.is_some() {
            self.set_reason("the schema needs one concrete type; write the type that the path stands for");
            return;
        }
        if path.path.segments[0].ident == "Self" {
            self.set_reason("`Self` cannot be named in a schema; write the type's name");
            return;
        }
        self.check_name(&last.ident);
        visit::visit_type_path(self, path);
    }

    fn check_name(&mut self, name: &Ident) {
        let name = name.to_string();
        if FUTURES.contains(&name.as_str()) {
            self.set_reason(
                "a future cannot be represented in JSON; use the value itself, or make the function `async`",
            );
        } else if STREAMS.contains(&name.as_str()) {
            self.set_reason("a stream cannot be represented in JSON; use a `Vec`");
        } else if FUNCTIONS.contains(&name.as_str()) {
            self.set_reason("a function cannot be represented in JSON");
        }
    }
}
