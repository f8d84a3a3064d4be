/* Keeps a copy of each file of the journal as it was when it was last synced: NAME.synced.
   Loaded in front of the C library by the tests of a power cut. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void keep(int fd) {
  char link[64], path[PATH_MAX], half[PATH_MAX + 16], whole[PATH_MAX + 16], buffer[65536];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return;
  path[length] = 0;
  const char *name = strrchr(path, '/');
  if (!name || (strcmp(name, "/journal.db") && strcmp(name, "/journal.db-wal"))) return;
  snprintf(half, sizeof half, "%s.half", path);
  snprintf(whole, sizeof whole, "%s.synced", path);
  int copy = open(half, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (copy < 0) return;
  /* By the descriptor that is synced: to open and close the file would release SQLite's locks. */
  off_t from = 0;
  ssize_t got;
  while ((got = pread(fd, buffer, sizeof buffer, from)) > 0) {
    if (write(copy, buffer, got) != got) break;
    from += got;
  }
  close(copy);
  rename(half, whole);
}

static int synced(const char *call, int fd) {
  int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
  int failed = next(fd);
  if (!failed) keep(fd);
  return failed;
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
