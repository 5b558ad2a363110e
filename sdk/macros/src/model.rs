//! The tools of a module or of a single function, as the macro has read them.
//!
//! An item has the identifier `ident` in the author's code and the name `name` in WIT.

use proc_macro2::Ident;
use syn::Type;

use crate::types::WitType;

/// The content of one WIT package.
pub(crate) struct Plugin {
    /// The package without its version, such as `plugin:weather`.
    pub(crate) package: String,
    pub(crate) version: String,
    /// The interface of a module; `None` for a single function, which its world exports.
    pub(crate) interface: Option<Interface>,
    pub(crate) functions: Vec<Function>,
    pub(crate) types: Vec<DataType>,
    pub(crate) entities: Vec<Entity>,
    /// Whether a function returns `ToolResult`.
    pub(crate) has_tool_result: bool,
}

/// The interface that a module becomes.
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
}

/// A function, or a method of an entity.
pub(crate) struct Function {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) kind: FunctionKind,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) output: Output,
}

/// The kind of a function, which determines how it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FunctionKind {
    /// A function of the module.
    Free,
    /// `fn new(…) -> Self` of an entity.
    Constructor,
    /// A function of an entity without a receiver.
    Static,
    /// A method with `&self`.
    Shared,
    /// A method with `&mut self`.
    Exclusive,
}

/// A parameter, without the receiver.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) wit: WitType,
    pub(crate) passing: Passing,
}

/// The form in which the glue passes an argument to the author's function. The type of a variant is the owned one, such as
/// `String` for `&str`.
pub(crate) enum Passing {
    /// `T`.
    Value(Type),
    /// `&T`.
    Reference(Type),
    /// `Option<&T>`.
    OptionalReference(Type),
    /// `Option<&str>` and `Option<&[T]>`.
    OptionalSlice(Type),
    /// `&T` of an entity.
    Borrow(Ident),
    /// `&mut T` of an entity.
    BorrowMut(Ident),
}

/// The result of a function.
pub(crate) enum Output {
    None,
    Value(WitType),
    /// A `Result` whose error becomes a string through `Display`.
    DisplayedError(Option<WitType>),
}

/// A record, an enum or a variant.
pub(crate) struct DataType {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) shape: Shape,
    /// Whether a parameter contains the type.
    pub(crate) is_input: bool,
    /// Whether a result contains the type.
    pub(crate) is_output: bool,
}

/// The shape of a data type.
pub(crate) enum Shape {
    Record(Vec<Field>),
    /// An enum without payloads.
    Enum(Vec<Case>),
    Variant(Vec<Case>),
}

/// A field of a record.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) wit: WitType,
}

/// A case of an enum or variant.
pub(crate) struct Case {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    /// The payload; several values are a tuple.
    pub(crate) payload: Vec<WitType>,
}

/// A struct whose methods are tools.
pub(crate) struct Entity {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) functions: Vec<Function>,
}
