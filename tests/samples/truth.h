/* What a sample says of its own calls, to be compared with what Sojourn recorded.
 *
 * Each sample function is named s_*, opens with TRUTH_ENTER and closes with TRUTH_LEAVE, which keep
 * a list of calls for each lane (an execution stack: a thread or a coroutine). At exit, the list is
 * written to the file named by TRUTH_FILE, one line a call in order of entry:
 *   lane <tab> depth <tab> name <tab> returned|unwound|open
 */
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

/* truth_lane makes the calling thread go on in lane `lane` (0 to 255); every thread starts in a
 * lane given by its creator or, for the first one, in lane 0. */
void truth_lane(int lane);
void truth_enter(const char *name);
void truth_leave(void);
int truth_depth(void);
/* truth_unwind ends the calls of the lane deeper than `depth` as unwound. */
void truth_unwind(int depth);
/* truth_write writes the file now (for samples that do not end by exit). */
void truth_write(void);
/* truth_forget drops all calls so far: what a forked child starts from. */
void truth_forget(void);

#define TRUTH_ENTER() truth_enter(__func__)
#define TRUTH_LEAVE() truth_leave()

#ifdef __cplusplus
}
#endif

#endif
