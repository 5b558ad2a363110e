//! Conversions between Rust types and those that `wit-bindgen` generates, which the macros use.

/// A value that a tool returns.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be returned by a tool",
    note = "define the type in the module with `#[toolwit_guest::tools]`"
)]
pub trait IntoWit {
    /// The generated type.
    type Wit;

    /// Converts the value.
    fn into_wit(self) -> Self::Wit;
}

/// A value that a tool receives.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a tool",
    note = "define the type in the module with `#[toolwit_guest::tools]`"
)]
pub trait FromWit {
    /// The generated type.
    type Wit;

    /// Converts the value.
    fn from_wit(wit: Self::Wit) -> Self;
}

macro_rules! same_type {
    ($($ty:ty),*) => {$(
        impl IntoWit for $ty {
            type Wit = Self;

            fn into_wit(self) -> Self {
                self
            }
        }

        impl FromWit for $ty {
            type Wit = Self;

            fn from_wit(wit: Self) -> Self {
                wit
            }
        }
    )*};
}

same_type!((), bool, char, u8, u16, u32, u64, i8, i16, i32, i64, f32, f64, String);

impl IntoWit for &str {
    type Wit = String;

    fn into_wit(self) -> String {
        self.to_owned()
    }
}

impl<T: Clone + IntoWit> IntoWit for &T {
    type Wit = T::Wit;

    fn into_wit(self) -> T::Wit {
        self.clone().into_wit()
    }
}

impl<T: Clone + IntoWit> IntoWit for &[T] {
    type Wit = Vec<T::Wit>;

    fn into_wit(self) -> Vec<T::Wit> {
        self.iter().cloned().map(T::into_wit).collect()
    }
}

impl<T: IntoWit> IntoWit for Option<T> {
    type Wit = Option<T::Wit>;

    fn into_wit(self) -> Option<T::Wit> {
        self.map(T::into_wit)
    }
}

impl<T: FromWit> FromWit for Option<T> {
    type Wit = Option<T::Wit>;

    fn from_wit(wit: Option<T::Wit>) -> Self {
        wit.map(T::from_wit)
    }
}

impl<T: IntoWit> IntoWit for Vec<T> {
    type Wit = Vec<T::Wit>;

    fn into_wit(self) -> Vec<T::Wit> {
        self.into_iter().map(T::into_wit).collect()
    }
}

impl<T: FromWit> FromWit for Vec<T> {
    type Wit = Vec<T::Wit>;

    fn from_wit(wit: Vec<T::Wit>) -> Self {
        wit.into_iter().map(T::from_wit).collect()
    }
}

impl<T: IntoWit, E: IntoWit> IntoWit for Result<T, E> {
    type Wit = Result<T::Wit, E::Wit>;

    fn into_wit(self) -> Result<T::Wit, E::Wit> {
        self.map(T::into_wit).map_err(E::into_wit)
    }
}

impl<T: FromWit, E: FromWit> FromWit for Result<T, E> {
    type Wit = Result<T::Wit, E::Wit>;

    fn from_wit(wit: Result<T::Wit, E::Wit>) -> Self {
        wit.map(T::from_wit).map_err(E::from_wit)
    }
}

macro_rules! tuples {
    ($(($($part:ident),+))*) => {$(
        impl<$($part: IntoWit),+> IntoWit for ($($part,)+) {
            type Wit = ($($part::Wit,)+);

            #[allow(non_snake_case, reason = "the names of the parts are those of their types")]
            fn into_wit(self) -> Self::Wit {
                let ($($part,)+) = self;
                ($($part.into_wit(),)+)
            }
        }

        impl<$($part: FromWit),+> FromWit for ($($part,)+) {
            type Wit = ($($part::Wit,)+);

            #[allow(non_snake_case, reason = "the names of the parts are those of their types")]
            fn from_wit(wit: Self::Wit) -> Self {
                let ($($part,)+) = wit;
                ($($part::from_wit($part),)+)
            }
        }
    )*};
}

tuples! {
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_parts_of_a_result_become_owned() {
        let result: Result<(&str, Vec<&str>), &str> = Ok(("a", vec!["b"]));
        assert_eq!(result.into_wit(), Ok(("a".to_owned(), vec!["b".to_owned()])));
        let slice: &[u32] = &[1, 2];
        assert_eq!(Some(slice).into_wit(), Some(vec![1, 2]));
    }

    #[test]
    fn arguments_keep_their_values() {
        let argument = Some(vec![(1_u8, "x".to_owned())]);
        assert_eq!(Option::<Vec<(u8, String)>>::from_wit(argument.clone()), argument);
    }
}
