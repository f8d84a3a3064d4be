//! What whoever started this program decided for it.

/// Has this signal been ignored since before this program began? `nohup` does that, and means it.
pub fn is_ignored(signal: i32) -> bool {
    let mut present = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call changes nothing; it writes the present one, whole, when it returns 0.
    #[expect(unsafe_code, reason = "how a signal is handled can only be asked this way")]
    unsafe {
        libc::sigaction(signal, std::ptr::null(), present.as_mut_ptr()) == 0
            && present.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
