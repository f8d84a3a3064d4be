//! Settings of the memory allocator.

/// Allocations of this size or more are mapped separately and returned to the system when they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: i32 = 256 * 1024;

/// Makes the allocator return large allocations to the system when they are freed. glibc raises this threshold with
/// every large allocation that is freed, up to 32 MiB; long answers then leave holes in the heap, and the server used
/// twice the memory it needed. Call it before anything else.
pub fn return_large_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: sets one parameter of the allocator, before there is a second thread.
        #[expect(unsafe_code, reason = "the only other way is an environment variable set before the start")]
        let is_set = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) } == 1;
        debug_assert!(is_set);
    }
}
