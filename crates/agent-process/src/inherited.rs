//! Signal settings inherited from the parent process.

/// Whether this signal was already ignored when this program started, as under `nohup`.
pub fn is_ignored(signal: i32) -> bool {
    let mut present = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call changes nothing; it fills in the current action when it returns 0.
    #[expect(unsafe_code, reason = "there is no safe call for this")]
    unsafe {
        libc::sigaction(signal, std::ptr::null(), present.as_mut_ptr()) == 0
            && present.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
