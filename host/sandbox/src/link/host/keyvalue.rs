//! `wasi:keyvalue`: buckets in the plugin's part of the key–value store, limited by the quota of its grant.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower, Resource, ResourceType};

use super::host_state::HostState;
use crate::grants::authority::{KeyValueError, KeyValueStore};
use crate::inspect::interfaces::KEYVALUE_STORES;
use toolwit_core::limits::{ByteCount, KEY_BYTES_MAX};

/// The maximum number of keys in one page of a list.
const KEYS_PER_PAGE: usize = 256;

/// A bucket that a guest has opened.
pub(super) struct Bucket {
    name: String,
}

impl Bucket {
    /// Returns the memory that the bucket's name occupies.
    pub(super) fn bytes(&self) -> usize {
        self.name.capacity()
    }
}

/// The type `error` of the interface.
#[derive(ComponentType, Lower)]
#[component(variant)]
enum BucketError {
    #[component(name = "no-such-store")]
    #[expect(dead_code, reason = "the interface declares it; every bucket exists here")]
    NoSuchStore,
    #[component(name = "access-denied")]
    AccessDenied,
    #[component(name = "other")]
    Other(String),
}

impl From<KeyValueError> for BucketError {
    fn from(error: KeyValueError) -> Self {
        Self::Other(error.to_string())
    }
}

/// The type `key-response` of the interface: a page of keys.
#[derive(ComponentType, Lower)]
#[component(record)]
struct KeyPage {
    keys: Vec<String>,
    /// The last key of the page, if more keys may follow.
    cursor: Option<String>,
}

type Context<'a> = StoreContextMut<'a, HostState>;

/// The return value of a host function. The inner error is returned to the guest; the outer one traps it.
type Outcome<T> = wasmtime::Result<(Result<T, BucketError>,)>;

/// The return value of a host function that waits for the key–value store, which may block on a disk or a network.
type OutcomeFuture<'a, T> = Box<dyn Future<Output = Outcome<T>> + Send + 'a>;

/// Links the interface.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for interface_name in KEYVALUE_STORES {
        let mut interface = linker.instance(interface_name)?;
        interface.resource("bucket", ResourceType::host::<Bucket>(), |mut context, rep| {
            context.data_mut().table().delete(Resource::<Bucket>::new_own(rep))?;
            Ok(())
        })?;
        interface.func_wrap("open", |context: Context<'_>, (name,): (String,)| open(context, name))?;
        interface.func_wrap_async(
            "[method]bucket.get",
            |context: Context<'_>, (bucket, key): (Resource<Bucket>, String)| {
                with_key(context, bucket, key, |bucket, key| {
                    bucket.store.get(&bucket.plugin, &bucket.name, key)
                })
            },
        )?;
        interface.func_wrap_async(
            "[method]bucket.set",
            |context: Context<'_>, (bucket, key, value): (Resource<Bucket>, String, Vec<u8>)| {
                with_key(context, bucket, key, move |bucket, key| {
                    let (store, plugin) = (&bucket.store, &bucket.plugin);
                    store.set(plugin, &bucket.name, key, &value, bucket.quota_bytes)
                })
            },
        )?;
        interface.func_wrap_async(
            "[method]bucket.delete",
            |context: Context<'_>, (bucket, key): (Resource<Bucket>, String)| {
                with_key(context, bucket, key, |bucket, key| {
                    bucket.store.delete(&bucket.plugin, &bucket.name, key)
                })
            },
        )?;
        interface.func_wrap_async(
            "[method]bucket.exists",
            |context: Context<'_>, (bucket, key): (Resource<Bucket>, String)| {
                with_key(context, bucket, key, |bucket, key| {
                    let value = bucket.store.get(&bucket.plugin, &bucket.name, key)?;
                    Ok(value.is_some())
                })
            },
        )?;
        interface.func_wrap_async(
            "[method]bucket.list-keys",
            |context: Context<'_>, (bucket, after): (Resource<Bucket>, Option<String>)| {
                with_bucket(context, bucket, move |bucket| {
                    let (store, plugin) = (&bucket.store, &bucket.plugin);
                    let keys = store.keys(plugin, &bucket.name, after.as_deref(), KEYS_PER_PAGE)?;
                    let cursor = keys.last().filter(|_| keys.len() == KEYS_PER_PAGE).cloned();
                    Ok(KeyPage { keys, cursor })
                })
            },
        )?;
    }
    Ok(())
}

fn open(mut context: Context<'_>, name: String) -> Outcome<Resource<Bucket>> {
    let state = context.data_mut();
    if state.authority()?.key_value_bytes_max().is_none() {
        return Ok((Err(BucketError::AccessDenied),));
    }
    if name.len() > KEY_BYTES_MAX {
        return Ok((Err(too_long("the name of the bucket")),));
    }
    Ok((Ok(state.table().push(Bucket { name })?),))
}

/// Creates the error for a key or a bucket name that is longer than the limit.
fn too_long(subject: &str) -> BucketError {
    let limit = ByteCount(KEY_BYTES_MAX as u64);
    BucketError::Other(format!("{subject} has more than {limit}"))
}

/// An open bucket of a plugin with a grant for key–value storage.
struct GrantedBucket {
    name: String,
    store: Arc<dyn KeyValueStore>,
    plugin: Arc<str>,
    quota_bytes: u64,
}

impl GrantedBucket {
    /// Returns a bucket, or `None` if key–value storage is not granted.
    fn new(state: &mut HostState, bucket: &Resource<Bucket>) -> wasmtime::Result<Option<Self>> {
        let name = state.table().get(bucket)?.name.clone();
        let authority = state.authority()?;
        Ok(authority.key_value_bytes_max().map(|quota_bytes| Self {
            name,
            store: authority.keyvalue.clone(),
            plugin: authority.plugin.clone(),
            quota_bytes,
        }))
    }
}

/// Runs an operation on a bucket if key–value storage is granted, on a thread that may block. The time limit of the call ends
/// only the wait for the operation: the operation itself continues.
fn with_bucket<'a, T: Send + 'static>(
    mut context: Context<'a>,
    bucket: Resource<Bucket>,
    operation: impl FnOnce(&GrantedBucket) -> Result<T, BucketError> + Send + 'static,
) -> OutcomeFuture<'a, T> {
    Box::new(async move {
        let Some(bucket) = GrantedBucket::new(context.data_mut(), &bucket)? else {
            return Ok((Err(BucketError::AccessDenied),));
        };
        Ok((tokio::task::spawn_blocking(move || operation(&bucket)).await?,))
    })
}

/// Runs an operation on one key of a bucket.
fn with_key<'a, T: Send + 'static>(
    context: Context<'a>,
    bucket: Resource<Bucket>,
    key: String,
    operation: impl FnOnce(&GrantedBucket, &str) -> Result<T, KeyValueError> + Send + 'static,
) -> OutcomeFuture<'a, T> {
    with_bucket(context, bucket, move |bucket| {
        if key.len() > KEY_BYTES_MAX {
            return Err(too_long("the key"));
        }
        Ok(operation(bucket, &key)?)
    })
}
