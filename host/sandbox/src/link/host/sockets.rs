//! `wasi:sockets`: sockets and name lookup, which are closed under every grant. The functions that begin either of them record the
//! denied access for the operator.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::p2::bindings::sockets as wasi2;
use wasmtime_wasi::p3::bindings::sockets as wasi3;

use super::host_state::HostState;

/// The version of WASI 0.2 under which wasmtime links the interfaces. The functions here replace functions of wasmtime.
const WASI2_VERSION: &str = "0.2.12";

/// The version of WASI 0.3 under which wasmtime links the interfaces.
const WASI3_VERSION: &str = "0.3.0";

type Context<'a> = StoreContextMut<'a, HostState>;

/// Links the functions of WASI 0.2.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    use wasi2::network::{ErrorCode, IpAddressFamily, Network};
    let name = |interface: &str| format!("wasi:sockets/{interface}@{WASI2_VERSION}");
    linker.instance(&name("tcp-create-socket"))?.func_wrap(
        "create-tcp-socket",
        |mut store: Context<'_>, (_,): (IpAddressFamily,)| {
            store.data_mut().refuse_socket("open a TCP socket");
            Ok((Err::<Resource<wasi2::tcp::TcpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    linker.instance(&name("udp-create-socket"))?.func_wrap(
        "create-udp-socket",
        |mut store: Context<'_>, (_,): (IpAddressFamily,)| {
            store.data_mut().refuse_socket("open a UDP socket");
            Ok((Err::<Resource<wasi2::udp::UdpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    linker.instance(&name("ip-name-lookup"))?.func_wrap(
        "resolve-addresses",
        |mut store: Context<'_>, (_, host): (Resource<Network>, String)| {
            store.data_mut().refuse_socket(&lookup_of(&host));
            let refused =
                Err::<Resource<wasi2::ip_name_lookup::ResolveAddressStream>, _>(ErrorCode::PermanentResolverFailure);
            Ok((refused,))
        },
    )
}

/// Links the functions of WASI 0.3.
pub(crate) fn add_wasi3_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    use wasi3::types::{ErrorCode, IpAddress, IpAddressFamily};
    let name = |interface: &str| format!("wasi:sockets/{interface}@{WASI3_VERSION}");
    let mut types = linker.instance(&name("types"))?;
    types.func_wrap(
        "[static]tcp-socket.create",
        |mut store: Context<'_>, (_,): (IpAddressFamily,)| {
            store.data_mut().refuse_socket("open a TCP socket");
            Ok((Err::<Resource<wasi3::types::TcpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    types.func_wrap(
        "[static]udp-socket.create",
        |mut store: Context<'_>, (_,): (IpAddressFamily,)| {
            store.data_mut().refuse_socket("open a UDP socket");
            Ok((Err::<Resource<wasi3::types::UdpSocket>, _>(ErrorCode::AccessDenied),))
        },
    )?;
    linker.instance(&name("ip-name-lookup"))?.func_wrap_concurrent(
        "resolve-addresses",
        |accessor, (host,): (String,)| {
            accessor.with(|mut store| store.get().refuse_socket(&lookup_of(&host)));
            let refused = Err::<Vec<IpAddress>, _>(wasi3::ip_name_lookup::ErrorCode::AccessDenied);
            Box::pin(async move { Ok((refused,)) })
        },
    )
}

fn lookup_of(host: &str) -> String {
    format!("look up the name `{host}`")
}
