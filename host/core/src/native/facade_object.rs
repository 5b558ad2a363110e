//! Objects whose tools are behind a facade.

use std::sync::Arc;

use super::tool_object::{ToolMethods, ToolObject};
use crate::{Error, Tool};

/// A type whose tools a facade reveals. The attribute `#[facade]` implements this trait, and `Facade::from_instance` of
/// `toolwit-agent` creates the facade.
pub trait FacadeObject: Send + Sync + 'static {
    /// Returns the outline of the facade of this object.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the schema of a parameter is invalid.
    fn facade(self: Arc<Self>) -> Result<FacadeOutline, Error>;
}

/// The name, the options and the tools from which a facade is built.
#[derive(Clone)]
#[non_exhaustive]
pub struct FacadeOutline {
    /// The preferred name.
    pub name: String,
    /// The description, from which the model decides when to open the facade.
    pub description: String,
    /// The category under which an outer facade lists this one.
    pub category: Option<String>,
    /// The name of the parameter that takes the category of the tools to open.
    pub category_parameter: Option<String>,
    /// Instructions for the model on how to combine the tools.
    pub usage_notes: Option<String>,
    /// Whether only the inner tools can be called until the turn ends.
    pub is_exclusive: bool,
    /// The inner tools.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The inner facades.
    pub facades: Vec<FacadeOutline>,
}

impl FacadeOutline {
    /// Creates an outline without options and tools.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            category: None,
            category_parameter: None,
            usage_notes: None,
            is_exclusive: false,
            tools: Vec::new(),
            facades: Vec::new(),
        }
    }
}

/// A wrapper in generated code for a field of an object. The type of the field decides whether the field adds a facade.
///
/// Generated code calls `add_to` and relies on autoref specialization. The call resolves to [`FacadeContent::add_to`] if
/// `FacadeField` implements that trait for the type of the field. Otherwise the call resolves to [`NoFacadeContent::add_to`]:
/// that trait is implemented for a reference to `FacadeField`, which Rust tries later.
pub struct FacadeField<'a, T>(pub &'a T);

/// A wrapper in generated code for the object that has the facade. The methods of the object may be tools. The call of `add_to`
/// resolves as for [`FacadeField`].
pub struct FacadeOwner<'a, T>(pub &'a Arc<T>);

/// A field or an object that adds tools or a facade to an outline.
pub trait FacadeContent {
    /// Adds the tools or the facade to the outline.
    ///
    /// # Errors
    /// As [`FacadeObject::facade`].
    fn add_to(&self, outline: &mut FacadeOutline) -> Result<(), Error>;
}

/// The fallback for a field or an object that adds nothing to an outline: `add_to` resolves to this trait if [`FacadeContent`] is
/// not implemented.
pub trait NoFacadeContent {
    /// Adds nothing.
    ///
    /// # Errors
    /// Never.
    fn add_to(&self, _outline: &mut FacadeOutline) -> Result<(), Error> {
        Ok(())
    }
}

/// A shared object with a facade, in a field of another object.
impl<T: FacadeObject> FacadeContent for FacadeField<'_, Arc<T>> {
    fn add_to(&self, outline: &mut FacadeOutline) -> Result<(), Error> {
        outline.facades.push(self.0.clone().facade()?);
        Ok(())
    }
}

/// An object with methods that are tools.
impl<T: ToolMethods> FacadeContent for FacadeOwner<'_, T> {
    fn add_to(&self, outline: &mut FacadeOutline) -> Result<(), Error> {
        outline.tools.extend(ToolObject::shared(self.0.clone()).tools_if_any()?);
        Ok(())
    }
}

impl<T> NoFacadeContent for &FacadeField<'_, T> {}

impl<T> NoFacadeContent for &FacadeOwner<'_, T> {}
