//! Which host names this server answers to.
//!
//! Comes in: the `Host` and `Origin` headers of a request. Goes out: yes or no.
//! A name that merely resolves to this machine is not ours: that is how DNS rebinding works. So both headers are
//! compared with one list, and never with each other.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The names this server has, and the port it listens on.
#[derive(Clone, Debug)]
pub struct Hosts {
    port: u16,
    own: Vec<String>,
    configured: Vec<HostName>,
}

/// A host and, where it is written, a port. The host is in lower case; an IPv6 address keeps its brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName {
    host: String,
    port: Option<u16>,
}

impl Hosts {
    /// `configured` are names that the user trusts.
    pub fn new(listening: SocketAddr, configured: Vec<HostName>) -> Self {
        let mut own: Vec<String> = ["127.0.0.1", "localhost", "[::1]"].map(String::from).to_vec();
        // A page cannot rebind an address, only a name, so the address we are bound to is safe.
        if !listening.ip().is_unspecified() {
            own.push(match listening.ip() {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            });
        }
        Self { port: listening.port(), own, configured }
    }

    /// Where this server listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Is this `Host` header, or the authority of an absolute request target, one of ours?
    pub fn allows_host(&self, authority: &str) -> bool {
        HostName::parse(authority).is_some_and(|name| self.is_own(&name, 80) || self.is_configured(&name))
    }

    /// Is this `Origin` header one of ours? `null` is nobody's.
    pub fn allows_origin(&self, origin: &str) -> bool {
        if let Some(authority) = origin.strip_prefix("http://") {
            return self.allows_host(authority);
        }
        // We do not use TLS, but a proxy named by the user may do so in front of us.
        let secure = origin.strip_prefix("https://").and_then(HostName::parse);
        secure.is_some_and(|name| self.is_configured(&name))
    }

    fn is_own(&self, name: &HostName, default_port: u16) -> bool {
        name.port.unwrap_or(default_port) == self.port && self.own.contains(&name.host)
    }

    /// A name configured without a port is valid with our port and without a port, as behind a proxy.
    fn is_configured(&self, name: &HostName) -> bool {
        self.configured.iter().any(|known| {
            known.host == name.host
                && match known.port {
                    Some(port) => name.port == Some(port),
                    None => name.port.is_none_or(|port| port == self.port),
                }
        })
    }
}

impl HostName {
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                address.parse::<std::net::Ipv6Addr>().ok()?;
                (&text[..address.len() + 2], rest.strip_prefix(':').or(rest.is_empty().then_some(""))?)
            }
            None => text.split_once(':').unwrap_or((text, "")),
        };
        let colon = text.len() > host.len();
        let port = match port {
            "" if colon => return None,
            "" => None,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let harmless = host.starts_with('[') || host.bytes().all(plain);
        (harmless && !host.is_empty()).then(|| Self { host: host.to_ascii_lowercase(), port })
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text.trim()).ok_or_else(|| {
            "not a host name; give names as in `box.example`, `box.example:8443` or `[fd00::5]:8443`, separated by \
             commas, without http:// and without *"
                .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(configured: &[&str]) -> Hosts {
        let configured = configured.iter().map(|name| name.parse().unwrap()).collect();
        Hosts::new("127.0.0.1:3000".parse().unwrap(), configured)
    }

    #[test]
    fn an_invalid_name_is_refused_and_never_ignored() {
        for good in ["box.example", " Box.Example:8443 ", "my_box", "10.0.0.7", "[fd00::5]", "[fd00::5]:443"] {
            assert!(good.parse::<HostName>().is_ok(), "{good:?}");
        }
        for bad in [
            "",
            " ",
            "*",
            "*.example",
            "http://box.example",
            "box.example/",
            "box:",
            "box:x",
            "box:70000",
            "a b",
            "::1",
            "bücher.example",
        ] {
            let reason = bad.parse::<HostName>().unwrap_err();
            assert!(reason.contains("not a host name"), "{bad:?}: {reason}");
        }
    }

    #[test]
    fn only_the_names_of_this_machine_with_our_port_are_ours() {
        let hosts = hosts(&[]);
        for good in ["127.0.0.1:3000", "localhost:3000", "LOCALHOST:3000", "[::1]:3000"] {
            assert!(hosts.allows_host(good), "{good}");
        }
        for bad in [
            "",
            ":",
            ":3000",
            "127.0.0.1",
            "localhost",
            "localhost:",
            "127.0.0.1:3001",
            "evil.example:3000",
            "localhost.:3000",
            "localhost:3000.evil.example",
            "localhost:3000@evil.example",
            "evil.example@localhost:3000",
            "[::1]",
            "[::1]:",
            "[::1]x:3000",
            "[::2]:3000",
            "::1:3000",
            "127.1:3000",
            "0.0.0.0:3000",
            "localhost:+3000",
            "localhost:03000000",
            " localhost:3000",
            "localhost:3000 ",
            "localhost:3000/",
            "127.0.0.1:3000,evil.example",
        ] {
            assert!(!hosts.allows_host(bad), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_compared_with_the_same_list() {
        let hosts = hosts(&[]);
        assert!(hosts.allows_origin("http://127.0.0.1:3000"));
        for bad in [
            "null",
            "",
            "http://",
            "http://127.0.0.1",
            "http://127.0.0.1:3000/",
            "https://127.0.0.1:3000",
            "http://evil.example:3000",
            "file://",
            "127.0.0.1:3000",
            "http://127.0.0.1:3000.evil.example",
            "chrome-extension://abcdefghijklmnop",
        ] {
            assert!(!hosts.allows_origin(bad), "{bad}");
        }
    }

    #[test]
    fn a_configured_name_is_good_with_our_port_or_behind_a_proxy() {
        let hosts = hosts(&["Box.example", "other.example:8443"]);
        for good in ["box.example", "BOX.example:3000", "other.example:8443"] {
            assert!(hosts.allows_host(good), "{good}");
        }
        for bad in ["box.example:80", "other.example", "other.example:3000", "a.box.example"] {
            assert!(!hosts.allows_host(bad), "{bad}");
        }
        assert!(hosts.allows_origin("https://box.example"));
        assert!(hosts.allows_origin("https://other.example:8443"));
        assert!(!hosts.allows_origin("https://evil.example"));
    }

    #[test]
    fn the_address_we_are_bound_to_is_ours_but_every_address_is_not() {
        let at = |address: &str| Hosts::new(address.parse().unwrap(), Vec::new());
        assert!(at("192.168.1.5:3000").allows_host("192.168.1.5:3000"));
        assert!(!at("0.0.0.0:3000").allows_host("0.0.0.0:3000"));
        assert!(at("127.0.0.1:80").allows_host("localhost"));
    }
}
