//! Facades of objects whose type has the attribute `#[facade]`.

use std::sync::Arc;

use super::Facade;
use toolwit_core::{Error, ErrorKind, FacadeObject, FacadeOutline, Phase, Tool};

impl Facade {
    /// Creates the facade of an object whose type has the attribute `#[facade]`. Inner facades are included.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidProvider`] if the object, or the object of an inner facade, has neither tools nor inner facades;
    /// otherwise as [`FacadeObject::facade`] and [`FacadeBuilder::build`](super::FacadeBuilder::build).
    pub fn from_instance<T: FacadeObject>(object: T) -> Result<Self, Error> {
        Self::from_shared(Arc::new(object))
    }

    /// Creates the facade of a shared object whose type has the attribute `#[facade]`. Inner facades are included.
    ///
    /// # Errors
    /// As [`from_instance`](Self::from_instance).
    pub fn from_shared<T: FacadeObject>(object: Arc<T>) -> Result<Self, Error> {
        from_outline(object.facade()?)
    }

    /// Creates the facade of an object whose type has the attribute `#[facade]`, or returns `None` if
    /// [`from_instance`](Self::from_instance) fails.
    #[must_use]
    pub fn from_instance_or_none<T: FacadeObject>(object: T) -> Option<Self> {
        Self::from_instance(object).ok()
    }
}

fn from_outline(outline: FacadeOutline) -> Result<Facade, Error> {
    if outline.tools.is_empty() && outline.facades.is_empty() {
        let message = format!("the facade `{}` has no tools", outline.name);
        return Err(Error::new(ErrorKind::InvalidProvider, Phase::Registry, message)
            .with_suggestion("write `#[tool]` on the methods of its type, or remove `#[facade]`"));
    }
    let mut builder = Facade::builder(outline.name, outline.description).tools(outline.tools);
    for inner in outline.facades {
        builder = builder.tools([Arc::new(from_outline(inner)?) as Arc<dyn Tool>]);
    }
    if let Some(category) = outline.category {
        builder = builder.own_category(category);
    }
    if let Some(parameter) = outline.category_parameter {
        builder = builder.category_parameter(parameter);
    }
    if let Some(notes) = outline.usage_notes {
        builder = builder.usage_notes(notes);
    }
    if outline.is_exclusive {
        builder = builder.exclusive();
    }
    builder.build()
}
