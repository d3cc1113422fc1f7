/* Sets the clock of the day of one process by as many seconds as the file CLOCK_OFFSET says at that moment.
 * Loaded before the C library. The monotonic clock goes on, as it does when somebody sets a clock. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
  const char *path = getenv("CLOCK_OFFSET");
  char text[32] = {0};
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  long count = read(file, text, sizeof text - 1);
  close(file);
  return count > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int status = syscall(SYS_clock_gettime, id, now);
  if (!status && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
  return status;
}

int gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  struct timespec fine;
  int status = clock_gettime(CLOCK_REALTIME, &fine);
  now->tv_sec = fine.tv_sec;
  now->tv_usec = fine.tv_nsec / 1000;
  return status;
}

time_t time(time_t *result) {
  struct timespec fine;
  clock_gettime(CLOCK_REALTIME, &fine);
  if (result) *result = fine.tv_sec;
  return fine.tv_sec;
}
