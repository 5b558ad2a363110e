//! What a component's functions take and give: one description from which schemas, decoder and encoder are made.

use std::sync::Arc;

use serde_json::Value;

use super::dynamic_export::DynamicExport;

/// The type of a value, as far as the host needs to know it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) enum WitType {
    Bool,
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
    F32,
    F64,
    Char,
    String,
    /// `list<u8>`, which travels as base64.
    Bytes,
    List(Box<WitType>),
    Tuple(Vec<WitType>),
    Record(Vec<Field>),
    Variant(Vec<Case>),
    Enum(Vec<Label>),
    Flags(Vec<Label>),
    Option(Box<WitType>),
    Result {
        ok: Option<Box<WitType>>,
        err: Option<Box<WitType>>,
    },
    /// A handle that is given away.
    Own(ResourceIndex),
    /// A handle that is lent for the call.
    Borrow(ResourceIndex),
}

/// Which of the component's resources: an index into [`Shape::resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct ResourceIndex(pub(crate) usize);

/// A name as WIT writes it and as JSON writes it, with its docs.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Label {
    pub(crate) wit: String,
    pub(crate) json: String,
    pub(crate) docs: Option<String>,
}

impl Label {
    pub(crate) fn new(wit: &str) -> Self {
        Self {
            wit: wit.to_owned(),
            json: toolwit_core::text::snake_case(wit),
            docs: None,
        }
    }
}

/// A field of a record, or a parameter of a function.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Field {
    pub(crate) label: Label,
    pub(crate) ty: WitType,
}

/// A case of a variant.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Case {
    pub(crate) label: Label,
    pub(crate) ty: Option<WitType>,
}

impl WitType {
    /// Whether a value of this type may be JSON `null`, so that an option around it must be marked.
    pub(crate) fn encodes_null(&self) -> bool {
        matches!(self, Self::Option(_))
    }

    /// Calls `visit` with every resource that a value of this type can hold or take.
    pub(crate) fn visit_resources(&self, visit: &mut impl FnMut(ResourceIndex)) {
        match self {
            Self::Own(index) | Self::Borrow(index) => visit(*index),
            Self::List(item) | Self::Option(item) => item.visit_resources(visit),
            Self::Tuple(items) => items.iter().for_each(|item| item.visit_resources(visit)),
            Self::Record(fields) => fields.iter().for_each(|field| field.ty.visit_resources(visit)),
            Self::Variant(cases) => cases
                .iter()
                .filter_map(|case| case.ty.as_ref())
                .for_each(|ty| ty.visit_resources(visit)),
            Self::Result { ok, err } => {
                ok.iter().chain(err).for_each(|ty| ty.visit_resources(visit));
            }
            _ => {}
        }
    }

    /// Whether a value of this type can hold a handle that is given away.
    pub(crate) fn holds_resources(&self) -> bool {
        let mut holds = false;
        self.visit_resources(&mut |_| holds = true);
        holds
    }
}

/// What kind of function it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum FunctionKind {
    /// A function of an interface or of the world.
    Free,
    /// Makes a resource.
    Constructor(ResourceIndex),
    /// Belongs to a resource, without an instance.
    Static(ResourceIndex),
    /// Needs a live resource, its first parameter.
    Method(ResourceIndex),
    /// `wasi:cli/run`: a program with arguments, standard input and output.
    Command,
    /// A function of `toolwit:plugin/dynamic`: it stands for tools, and is none.
    Dynamic,
}

/// An exported function that can be offered as a tool.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Function {
    /// The exporting interface as the component names it (`demo:tool/calc@0.1.0`); `None` for the world itself.
    #[serde(with = "super::shared_text")]
    pub(crate) interface: Option<Arc<str>>,
    /// The function as the component names it: `add`, `[method]customer.get-average-spend`.
    pub(crate) export: String,
    /// What kind it is.
    pub(crate) kind: FunctionKind,
    /// Its own short name in WIT: `add`, `get-average-spend`.
    pub(crate) name: String,
    /// Parameters, without `self`.
    pub(crate) params: Vec<Field>,
    /// The result.
    pub(crate) result: Option<WitType>,
    /// Whether the result, or what it is when all went well, is `tool-result` of `toolwit:plugin`.
    #[serde(skip)]
    pub(crate) gives_tool_result: bool,
    /// What the author wrote about it.
    pub(crate) docs: Option<String>,
    /// Schema of the parameters.
    #[serde(skip)]
    pub(crate) input_schema: Arc<Value>,
    /// Schema of the result, without `err`.
    #[serde(skip)]
    pub(crate) output_schema: Option<Arc<Value>>,
}

impl Function {
    /// What a successful call gives, and what a failed one does: the sides of a `result`, else the result itself.
    pub(crate) fn outcome(&self) -> (Option<&WitType>, Option<&WitType>) {
        match &self.result {
            Some(WitType::Result { ok, err }) => (ok.as_deref(), err.as_deref()),
            other => (other.as_ref(), None),
        }
    }

    /// The last part of the interface's name: `calc` of `demo:tool/calc@0.1.0`.
    pub(crate) fn interface_name(&self) -> Option<&str> {
        self.interface.as_deref().map(short_interface)
    }
}

/// Cuts an interface's name down to its last part.
pub(crate) fn short_interface(interface: &str) -> &str {
    let path = interface.split_once('@').map_or(interface, |(path, _)| path);
    path.rsplit(['/', ':']).next().unwrap_or(path)
}

/// A resource that the component exports.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Resource {
    /// The exporting interface; `None` for the world itself.
    #[serde(with = "super::shared_text")]
    pub(crate) interface: Option<Arc<str>>,
    /// Its name in WIT: `customer`.
    pub(crate) name: String,
    /// What the author wrote about it.
    pub(crate) docs: Option<String>,
    /// Indexes of its methods in [`Shape::functions`].
    pub(crate) methods: Vec<usize>,
    /// Which instance stays when the same entity is returned again.
    pub(crate) rebinding: toolwit_core::Rebinding,
    /// Whether its methods are declared from the start and act on the instance that was returned last.
    #[serde(default)]
    pub(crate) chained: bool,
    /// Its `id: func() -> string`, if it has one.
    pub(crate) id: Option<usize>,
    /// Its `describe`, a method without parameters, if it has one.
    pub(crate) describe: Option<usize>,
}

impl Resource {
    /// The name as tools and JSON write it.
    pub(crate) fn json_name(&self) -> String {
        toolwit_core::text::snake_case(&self.name)
    }
}

/// An export that is no tool, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SkippedExport {
    /// The export, as the component names it.
    pub export: String,
    /// Why it is no tool.
    pub reason: String,
}

/// All that a component exports, as tools see it.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Shape {
    pub(crate) functions: Vec<Function>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) skipped: Vec<SkippedExport>,
    /// Where it tells tools when it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dynamic: Option<DynamicExport>,
}

impl Shape {
    /// Whether handles can come out of a call, so that calls of a conversation must share an instance.
    pub(crate) fn is_stateful(&self) -> bool {
        self.functions
            .iter()
            .any(|function| function.result.as_ref().is_some_and(WitType::holds_resources))
    }
}
