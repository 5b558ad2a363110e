//! The types of a component's functions and resources. The schemas, the decoder and the encoder work on these types.

use std::sync::Arc;

use serde_json::Value;

use super::dynamic_export::DynamicExport;
use super::interceptor_export::InterceptorExport;
use toolwit_core::EffectClass;

/// A WIT type. References to named types are resolved.
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
    /// `list<u8>`, encoded as base64.
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
    /// An owned handle.
    Own(ResourceIndex),
    /// A handle that is borrowed for the call.
    Borrow(ResourceIndex),
    /// A stream. In a result, it is read to its end before the result is encoded.
    Stream(Box<WitType>),
    /// A future. In a result, it is awaited before the result is encoded.
    Future(Option<Box<WitType>>),
}

/// The prefix of the data URL that represents the bytes of a stream in JSON if they are not UTF-8.
pub(crate) const DATA_URL_START: &str = "data:application/octet-stream;base64,";

/// An index into [`Shape::resources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct ResourceIndex(pub(crate) usize);

/// A name in kebab-case for WIT and in snake_case for JSON, with its docs.
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
    /// Returns whether a value of this type can be JSON `null`, so that an option of this type needs an explicit `some`.
    pub(crate) fn encodes_null(&self) -> bool {
        match self {
            Self::Option(_) | Self::Future(None) => true,
            // A future is encoded as its payload.
            Self::Future(Some(payload)) => payload.encodes_null(),
            _ => false,
        }
    }

    /// Returns whether a value of this type can contain a stream or a future.
    pub(crate) fn holds_streams(&self) -> bool {
        match self {
            Self::Stream(_) | Self::Future(_) => true,
            Self::List(item) | Self::Option(item) => item.holds_streams(),
            Self::Tuple(items) => items.iter().any(Self::holds_streams),
            Self::Record(fields) => fields.iter().any(|field| field.ty.holds_streams()),
            Self::Variant(cases) => cases
                .iter()
                .filter_map(|case| case.ty.as_ref())
                .any(Self::holds_streams),
            Self::Result { ok, err } => ok.iter().chain(err).any(|ty| ty.holds_streams()),
            _ => false,
        }
    }

    /// Returns whether the type is a number, a boolean, a character or a string.
    pub(crate) fn is_scalar(&self) -> bool {
        use WitType::{Bool, Char, F32, F64, S8, S16, S32, S64, String, U8, U16, U32, U64};
        matches!(
            self,
            Bool | S8 | U8 | S16 | U16 | S32 | U32 | S64 | U64 | F32 | F64 | Char | String
        )
    }

    /// Calls `visit` with every resource whose handles a value of this type can contain.
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
            // The other types contain no handles. Streams and futures of handles are refused when the component is inspected.
            _ => {}
        }
    }

    /// Returns whether a value of this type can contain a handle.
    pub(crate) fn holds_resources(&self) -> bool {
        let mut holds = false;
        self.visit_resources(&mut |_| holds = true);
        holds
    }
}

/// The kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum FunctionKind {
    /// A function of an interface or of the world.
    Free,
    /// A constructor of a resource.
    Constructor(ResourceIndex),
    /// A static function of a resource.
    Static(ResourceIndex),
    /// A method of a resource. Its first parameter in WIT is the resource.
    Method(ResourceIndex),
    /// `wasi:cli/run`: a program with arguments, standard input and output.
    Command,
    /// A function of `toolwit:plugin/dynamic`, or of a contract of another host. It lists or calls dynamic tools, and is not
    /// a tool itself.
    Dynamic,
    /// A function of `toolwit:plugin/interceptor`, which the host calls around the calls of other tools.
    Interceptor,
}

impl FunctionKind {
    /// Returns whether only the host calls the function, so that it is not a tool.
    pub(crate) fn is_for_host(self) -> bool {
        matches!(self, Self::Dynamic | Self::Interceptor)
    }
}

/// An exported function.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Function {
    /// The exporting interface as the component names it (`demo:tool/calc@0.1.0`); `None` for the world itself.
    #[serde(with = "super::shared_text")]
    pub(crate) interface: Option<Arc<str>>,
    /// The export name: `add`, `[method]customer.get-average-spend`.
    pub(crate) export: String,
    pub(crate) kind: FunctionKind,
    /// The short name in WIT: `add`, `get-average-spend`.
    pub(crate) name: String,
    /// The parameters, without `self`.
    pub(crate) params: Vec<Field>,
    pub(crate) result: Option<WitType>,
    /// Whether a successful call returns `tool-result` of `toolwit:plugin`.
    #[serde(skip)]
    pub(crate) returns_tool_result: bool,
    pub(crate) docs: Option<String>,
    /// The effect class that the author declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<EffectClass>,
    /// The schema of the parameters.
    #[serde(skip)]
    pub(crate) input_schema: Arc<Value>,
    /// The schema of a successful result; `None` if the result is a `tool-result`.
    #[serde(skip)]
    pub(crate) output_schema: Option<Arc<Value>>,
}

impl Function {
    /// Returns the types of the value of a successful call and of the error of a failed call. If the function does not return a
    /// `result`, every call is successful.
    pub(crate) fn outcome_types(&self) -> (Option<&WitType>, Option<&WitType>) {
        match &self.result {
            Some(WitType::Result { ok, err }) => (ok.as_deref(), err.as_deref()),
            other => (other.as_ref(), None),
        }
    }

    /// Returns whether the parameters or the result can contain streams or futures.
    pub(crate) fn holds_streams(&self) -> bool {
        let params = self.params.iter().map(|param| &param.ty);
        params.chain(&self.result).any(WitType::holds_streams)
    }

    /// Returns the last part of the interface's name: `calc` of `demo:tool/calc@0.1.0`.
    pub(crate) fn interface_name(&self) -> Option<&str> {
        self.interface.as_deref().map(short_interface)
    }
}

/// Returns the last part of an interface's name.
pub(crate) fn short_interface(interface: &str) -> &str {
    let path = interface.split_once('@').map_or(interface, |(path, _)| path);
    path.rsplit(['/', ':']).next().unwrap_or(path)
}

/// An exported resource.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Resource {
    /// The exporting interface; `None` for the world itself.
    #[serde(with = "super::shared_text")]
    pub(crate) interface: Option<Arc<str>>,
    /// The name in WIT: `customer`.
    pub(crate) name: String,
    pub(crate) docs: Option<String>,
    /// The indexes of its methods in [`Shape::functions`].
    pub(crate) methods: Vec<usize>,
    /// Whether the tools of an entity act on the first or on the most recent instance when the entity is returned again.
    pub(crate) rebinding: toolwit_core::Rebinding,
    /// Whether its methods are tools from the start of a conversation, and act on the most recently returned instance.
    #[serde(rename = "chained", default)]
    pub(crate) is_chained: bool,
    /// The index in [`Shape::functions`] of the method that returns the id, if it has one. By default, this is
    /// `id: func() -> string`.
    #[serde(rename = "id")]
    pub(crate) id_method: Option<usize>,
    /// The index in [`Shape::functions`] of its method `describe` without parameters, if it has one.
    #[serde(rename = "describe")]
    pub(crate) describe_method: Option<usize>,
}

impl Resource {
    /// Returns the name that tool names and JSON use.
    pub(crate) fn json_name(&self) -> String {
        toolwit_core::text::snake_case(&self.name)
    }
}

/// An export that is not a tool, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SkippedExport {
    /// The name of the export.
    pub export: String,
    /// The reason why it is not a tool.
    pub reason: String,
}

/// The exports of a component: its functions and resources with their types, and the exports that are not tools.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Shape {
    pub(crate) functions: Vec<Function>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) skipped: Vec<SkippedExport>,
    /// The exported interface that lists and calls dynamic tools, with the discovered tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dynamic: Option<DynamicExport>,
    /// The exported `toolwit:plugin/interceptor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interceptor: Option<InterceptorExport>,
    /// Whether the package declares that its functions share state, so that the calls of a conversation share an instance.
    #[serde(default)]
    pub(crate) keeps_state: bool,
}

impl Shape {
    /// Returns whether the calls of a conversation must share an instance: a call can return handles, or the package declares state.
    pub(crate) fn is_stateful(&self) -> bool {
        self.keeps_state
            || self
                .functions
                .iter()
                .any(|function| function.result.as_ref().is_some_and(WitType::holds_resources))
    }
}
