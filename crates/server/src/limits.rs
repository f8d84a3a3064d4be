//! Limits on open connections, derived from the limit on open files.
//!
//! Every connection is an open file, and so is every pipe of an agent and every file that is written. If connections
//! could use them all, a client that opens many sockets would prevent a session from being created or saved. So
//! connections get at most three eighths; agents may use half (`agent_process`), and an eighth is left for files.

/// However high the limit: a browser keeps at most six idle connections per host, so this is room for forty browsers.
const WAITING_MAX: usize = 256;
/// Requests are short; so many at once means a broken page.
const HTTP_MAX: usize = 512;
/// Each window has authenticated itself, so this only guards against a broken page.
const WINDOWS_MAX: usize = 256;
/// However low the limit: one browser.
const LEAST: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// HTTP connections in all, those being served included.
    pub(crate) http: usize,
    /// Of these, connections that have not sent a request yet, or not another one.
    pub(crate) waiting: usize,
    /// WebSockets.
    pub(crate) windows: usize,
}

impl Limits {
    /// For a process that may have so many files open.
    pub fn for_open_files(open_files: u64) -> Self {
        let files = usize::try_from(open_files).unwrap_or(usize::MAX);
        Self {
            http: (files / 4).clamp(2 * LEAST, HTTP_MAX),
            waiting: (files / 8).clamp(LEAST, WAITING_MAX),
            windows: (files / 8).clamp(LEAST, WINDOWS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_most_of_the_files_to_agents_and_data() {
        for files in [64, 100, 256, 512, 1024, 4096, 10_240, 1_000_000, u64::MAX] {
            let limits = Limits::for_open_files(files);
            let taken = (limits.http + limits.windows) as u128;
            assert!(taken * 8 <= u128::from(files) * 3, "{files}: {limits:?}");
            assert!(limits.waiting <= limits.http / 2, "{files}: {limits:?}");
        }
        assert_eq!(Limits::for_open_files(256), Limits { http: 64, waiting: 32, windows: 32 });
        assert_eq!(Limits::for_open_files(10_240), Limits { http: 512, waiting: 256, windows: 256 });
    }

    #[test]
    fn one_browser_fits_under_any_limit() {
        assert_eq!(Limits::for_open_files(0), Limits { http: 12, waiting: 6, windows: 6 });
    }
}
