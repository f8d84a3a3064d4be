//! The owner of a connection. Checked before a one-time link is redeemed.
//!
//! Every user of the machine can read a browser's command line, so a ticket alone proves nothing: the socket at the
//! other end must belong to our own user. Linux reports this in `/proc/net/tcp` and `tcp6`. Where there is no such
//! table, the owner is unknown, and the ticket is passed in a private file instead.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The kernel returns the table in parts; an entry may be missed while others come and go.
const ATTEMPTS: usize = 3;
/// In other states a socket that its process has closed is listed with user 0. Only this state has an owner.
const ESTABLISHED: &str = "01";

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    /// Our end.
    pub(crate) local: SocketAddr,
}

/// The user at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionOwner {
    Ours,
    /// Another user of this machine, or another machine.
    Other,
    /// This system does not report it.
    Unknown,
}

/// Whether this system reports the owner of a connection.
pub(crate) fn reports_owner() -> bool {
    TABLES.iter().any(|table| File::open(table).is_ok_and(|file| has_owners(BufReader::new(file))))
}

/// Reads the kernel's table: must not run on a thread that others wait for.
pub(crate) fn user_of(connection: Connection) -> ConnectionOwner {
    if !reports_owner() {
        return ConnectionOwner::Unknown;
    }
    let owner = (0..ATTEMPTS).find_map(|_| {
        let tables = TABLES.iter().filter_map(|table| File::open(table).ok());
        tables.into_iter().find_map(|table| owner_in(BufReader::new(table), connection))
    });
    match owner {
        Some(uid) if uid == rustix::process::geteuid().as_raw() => ConnectionOwner::Ours,
        // Not found: it comes from another machine, or was already closed.
        Some(_) | None => ConnectionOwner::Other,
    }
}

/// A table without the column, or without any entry, is of no use.
fn has_owners(mut table: impl BufRead) -> bool {
    let mut head = String::new();
    table.read_line(&mut head).is_ok() && head.split_whitespace().any(|column| column == "uid")
}

/// The user whose socket has our end as its remote address.
fn owner_in(table: impl BufRead, connection: Connection) -> Option<u32> {
    table.lines().map_while(Result::ok).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, _, _, _, uid, _, inode, ..] = fields[..] else { return None };
        let is_peer = state == ESTABLISHED
            && inode != "0"
            && address(local)? == canonical(connection.peer)
            && address(remote)? == canonical(connection.local);
        if is_peer { uid.parse().ok() } else { None }
    })
}

/// An IPv4-mapped IPv6 address is the same address.
fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// `0100007F:0BB8`: 32-bit words in the byte order of the machine, and a port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let octets: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(octets).into()
        }
        _ => return None,
    };
    Some((ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// As a little-endian machine writes it; the ports are 3000 and 40000 + the line.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 0100007F:9C41 0100007F:0BB8 01 00000000:00000000 00:00000000 00000000  1001        0 12 1 0 20 4 30 10 -1
   2: 0100007F:0BB8 0100007F:9C41 01 00000000:00000000 00:00000000 00000000  1000        0 13 1 0 20 4 30 10 -1
   3: 0100007F:9C43 0100007F:0BB8 06 00000000:00000000 03:00000F5A 00000000     0        0 0 3 0
   4: 0100007F:9C44 0100007F:0BB8 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   5: 0000000000000000FFFF00000100007F:9C45 0000000000000000FFFF00000100007F:0BB8 01 00000000:00000000 00:00000000 00000000  1005        0 16 1 0 20 4 30 10 -1
   6: 00000000000000000000000001000000:9C46 00000000000000000000000001000000:0BB8 01 00000000:00000000 00:00000000 00000000  1006        0 17 1 0 20 4 30 10 -1
   7: broken
";

    fn owner(peer: &str, local: &str) -> Option<u32> {
        let connection = Connection { peer: peer.parse().unwrap(), local: local.parse().unwrap() };
        owner_in(TABLE.as_bytes(), connection)
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_owner_is_that_of_the_other_end_and_of_an_open_socket() {
        assert_eq!(owner("127.0.0.1:40001", "127.0.0.1:3000"), Some(1001), "and not 1000, which is our end");
        assert_eq!(owner("127.0.0.1:40001", "127.0.0.1:3001"), None, "to another port");
        assert_eq!(owner("127.0.0.2:40001", "127.0.0.1:3000"), None, "from another address");
        assert_eq!(owner("127.0.0.1:40003", "127.0.0.1:3000"), None, "closed: the table says 0, which is root");
        assert_eq!(owner("127.0.0.1:40004", "127.0.0.1:3000"), None, "no file, no owner");
        for mapped in ["127.0.0.1", "[::ffff:127.0.0.1]"] {
            assert_eq!(owner(&format!("{mapped}:40005"), &format!("{mapped}:3000")), Some(1005), "{mapped}");
            assert_eq!(owner(&format!("{mapped}:40001"), &format!("{mapped}:3000")), Some(1001), "{mapped}");
        }
        assert_eq!(owner("[::1]:40006", "[::1]:3000"), Some(1006));
    }

    #[test]
    fn an_invalid_address_is_none() {
        for bad in ["", ":", "0100007F", "0100007:0BB8", "0100007G:0BB8", "0100007F:10000", "é00000F:0BB8"] {
            assert_eq!(address(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_table_without_owners_is_not_used() {
        assert!(has_owners(TABLE.as_bytes()));
        assert!(!has_owners("".as_bytes()) && !has_owners("sl local_address rem_address st\n".as_bytes()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn our_own_connections_are_ours_over_ipv4_ipv6_and_mapped() {
        for (bind, dial) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")]
        {
            let listener = match TcpListener::bind(bind) {
                Ok(listener) => listener,
                // A machine without IPv6.
                Err(_) if bind.starts_with('[') => continue,
                Err(error) => panic!("{bind}: {error}"),
            };
            let ip: IpAddr = dial.parse().unwrap();
            let client = TcpStream::connect((ip, listener.local_addr().unwrap().port())).unwrap();
            let (served, peer) = listener.accept().unwrap();
            let connection = Connection { peer, local: served.local_addr().unwrap() };
            assert_eq!(user_of(connection), ConnectionOwner::Ours, "{bind} from {dial}");
            drop(client);
            assert_eq!(user_of(connection), ConnectionOwner::Other, "{bind} from {dial}, closed");
        }
    }
}
