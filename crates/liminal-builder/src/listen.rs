//! Binds the port, or explains what to do when that fails.

use std::io::ErrorKind;
use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use tokio::net::TcpListener;

pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let (ip, port) = (address.ip(), address.port());
        match error.kind() {
            ErrorKind::AddrInUse => anyhow!(
                "port {port} on {ip} is in use by another program.\n\
                 Start with --port {} or with --port 0 for any free one, or stop the other program.",
                port.checked_add(1).unwrap_or(3000)
            ),
            ErrorKind::PermissionDenied => anyhow!(
                "you may not listen on port {port} of {ip}.\nStart with a port above 1023, such as --port 3000."
            ),
            ErrorKind::AddrNotAvailable => {
                anyhow!("{ip} is not an address of this machine.\nStart with --host 127.0.0.1 or omit --host.")
            }
            _ => anyhow::Error::new(error).context(format!("could not listen on {address}")),
        }
    })
}

/// The address a browser on this machine can use.
pub(crate) fn base_url(listener: &TcpListener) -> anyhow::Result<(SocketAddr, String)> {
    let bound = listener.local_addr().context("could not see which port was taken")?;
    let mut reachable = bound;
    if bound.ip().is_unspecified() {
        reachable.set_ip(if bound.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    Ok((bound, format!("http://{reachable}")))
}
