//! `wasi:keyvalue`: a store for each plugin, as large as its grant says.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceAny, ResourceType, Val};

use crate::call::state::HostState;
use crate::grants::authority::KeyValueStore;
use crate::inspect::interfaces::KEYVALUE_STORES;

/// The longest key.
const KEY_BYTES_MAX: usize = 1 << 10;

/// Keys of one page of a list.
const KEYS_PER_PAGE: usize = 256;

/// A plugin's access to its store.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) store: Arc<dyn KeyValueStore>,
    pub(crate) plugin: Arc<str>,
    /// `None` where nothing is granted.
    pub(crate) bytes_max: Option<u64>,
}

/// A bucket that a guest has opened.
pub(crate) struct Bucket {
    name: String,
}

/// What a call of the guest comes to: a value, or the interface's own error.
type Told = Result<Option<Val>, Val>;

/// Links the interface.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for name in KEYVALUE_STORES {
        let mut instance = linker.instance(name)?;
        instance.resource("bucket", ResourceType::host::<Bucket>(), |mut state, rep| {
            state.data_mut().table().delete(Resource::<Bucket>::new_own(rep))?;
            Ok(())
        })?;
        instance.func_new("open", |mut state, _, arguments, results| {
            let opened = open(&mut state, arguments)?;
            answer(results, opened)
        })?;
        for method in [
            Method::Get,
            Method::Set,
            Method::Delete,
            Method::Exists,
            Method::ListKeys,
        ] {
            instance.func_new(method.name(), move |mut state, _, arguments, results| {
                let told = run(&mut state, method, arguments)?;
                answer(results, told)
            })?;
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Method {
    Get,
    Set,
    Delete,
    Exists,
    ListKeys,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Get => "[method]bucket.get",
            Self::Set => "[method]bucket.set",
            Self::Delete => "[method]bucket.delete",
            Self::Exists => "[method]bucket.exists",
            Self::ListKeys => "[method]bucket.list-keys",
        }
    }
}

fn open(state: &mut StoreContextMut<'_, HostState>, arguments: &[Val]) -> wasmtime::Result<Told> {
    let access = state.data_mut().keyvalue();
    let [Val::String(name)] = arguments else {
        return Ok(Err(other("the name of a bucket is text")));
    };
    if access.bytes_max.is_none() {
        return Ok(Err(Val::Variant("access-denied".to_owned(), None)));
    }
    if name.len() > KEY_BYTES_MAX {
        return Ok(Err(other("the name is too long")));
    }
    let bucket = state.data_mut().table().push(Bucket { name: name.clone() })?;
    let handle = ResourceAny::try_from_resource(bucket, &mut *state)?;
    Ok(Ok(Some(Val::Resource(handle))))
}

fn run(state: &mut StoreContextMut<'_, HostState>, method: Method, arguments: &[Val]) -> wasmtime::Result<Told> {
    let access = state.data_mut().keyvalue();
    let Some(Val::Resource(handle)) = arguments.first() else {
        return Ok(Err(other("there is no bucket")));
    };
    let bucket: Resource<Bucket> = handle.try_into_resource(&mut *state)?;
    let bucket = state.data_mut().table().get(&bucket)?.name.clone();
    let Some(bytes_max) = access.bytes_max else {
        return Ok(Err(Val::Variant("access-denied".to_owned(), None)));
    };
    let done = match (method, &arguments[1..]) {
        (Method::ListKeys, [Val::Option(cursor)]) => {
            let after = match cursor.as_deref() {
                Some(Val::String(after)) => Some(after.as_str()),
                _ => None,
            };
            access
                .store
                .keys(&access.plugin, &bucket, after, KEYS_PER_PAGE)
                .map(page)
        }
        (_, [Val::String(key), ..]) if key.len() > KEY_BYTES_MAX => return Ok(Err(other("the key is too long"))),
        (Method::Get, [Val::String(key)]) => {
            let bytes = |value: Vec<u8>| Box::new(Val::List(value.into_iter().map(Val::U8).collect()));
            access
                .store
                .get(&access.plugin, &bucket, key)
                .map(|value| Some(Val::Option(value.map(bytes))))
        }
        (Method::Exists, [Val::String(key)]) => access
            .store
            .get(&access.plugin, &bucket, key)
            .map(|value| Some(Val::Bool(value.is_some()))),
        (Method::Delete, [Val::String(key)]) => access.store.delete(&access.plugin, &bucket, key).map(|()| None),
        (Method::Set, [Val::String(key), Val::List(value)]) => {
            let byte = |value: &Val| if let Val::U8(byte) = value { *byte } else { 0 };
            let value: Vec<u8> = value.iter().map(byte).collect();
            access
                .store
                .set(&access.plugin, &bucket, key, &value, bytes_max)
                .map(|()| None)
        }
        _ => return Ok(Err(other("the arguments do not fit"))),
    };
    Ok(done.map_err(|error| other(&error.to_string())))
}

/// A page of keys; its last one is the cursor when there may be more.
fn page(keys: Vec<String>) -> Option<Val> {
    let cursor = keys.last().filter(|_| keys.len() == KEYS_PER_PAGE).cloned();
    Some(Val::Record(vec![
        (
            "keys".to_owned(),
            Val::List(keys.into_iter().map(Val::String).collect()),
        ),
        (
            "cursor".to_owned(),
            Val::Option(cursor.map(|key| Box::new(Val::String(key)))),
        ),
    ]))
}

fn other(why: &str) -> Val {
    Val::Variant("other".to_owned(), Some(Box::new(Val::String(why.to_owned()))))
}

fn answer(results: &mut [Val], told: Told) -> wasmtime::Result<()> {
    if let Some(result) = results.first_mut() {
        *result = Val::Result(match told {
            Ok(value) => Ok(value.map(Box::new)),
            Err(error) => Err(Some(Box::new(error))),
        });
    }
    Ok(())
}
