/* A sample's own record of its calls. Tests compare it with what Sojourn recorded.
 *
 * Each sample function is named s_*, begins with TRUTH_ENTER and ends with TRUTH_LEAVE. These keep
 * a list of calls for each lane (an execution stack: a thread or a coroutine). At exit, the list is
 * written to the file named by TRUTH_FILE, one line for each call in the sequence of their entries:
 *   lane <tab> depth <tab> name <tab> returned|unwound|open */
#ifndef SJ_TESTS_SAMPLES_TRUTH_H
#define SJ_TESTS_SAMPLES_TRUTH_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define SAMPLE __attribute__((noinline))
#else
#define SAMPLE __attribute__((noipa))
#endif

/* Switches the calling thread to lane `lane` (0 to 255). The first thread starts in lane 0. The
 * creator of another thread gives it its first lane. */
void truth_lane(int lane);
void truth_enter(const char *name);
void truth_leave(void);
int truth_depth(void);
/* Ends all calls of the lane that are deeper than `depth`, as unwound. */
void truth_unwind(int depth);
/* Writes the file now. Needed by samples that do not end by exit(). */
void truth_write(void);
/* Discards all calls so far. A forked child starts with this. */
void truth_forget(void);

#define TRUTH_ENTER() truth_enter(__func__)
#define TRUTH_LEAVE() truth_leave()

#ifdef __cplusplus
}
#endif

#endif
