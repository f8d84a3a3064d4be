//! How this program asks the system for memory.

/// Larger pieces come from the system one by one and go back to it as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: i32 = 256 * 1024;

/// Gives large memory back when it is freed. By itself glibc raises the size from which it does so with every such piece, up
/// to 32 MiB, and long answers that come and go leave it with holes: a server took twice what it held. To be called first.
pub fn give_large_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets one number of the allocator, before there is a second thread.
        #[expect(unsafe_code, reason = "the allocator can only be told this way, or by a variable before the start")]
        let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) } == 1;
        debug_assert!(is_set);
    }
}
