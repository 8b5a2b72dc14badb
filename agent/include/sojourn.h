/* Sojourn: a program's interface to its tracer. C89 and C++.
 *
 * Nothing has to be linked. When the program is not traced, every call is one comparison; once it
 * has been attached to, a call and a return. (Position
 * independent programs and libraries only, which is the compilers' default: in a program linked
 * with -no-pie the linker makes all of these calls nothing.) */
#ifndef SOJOURN_H
#define SOJOURN_H

#ifdef __cplusplus
extern "C" {
#endif

/* The agent's own functions; call the macros below. */
#if defined(__GNUC__)
extern void sojourn_agent_mark_begin(const char *name) __attribute__((weak));
extern void sojourn_agent_mark_end(const char *name) __attribute__((weak));

/* sojourn_mark_begin and sojourn_mark_end bracket a phase or a test case named `name`: at most 63
 * bytes are kept, the string is copied. Any thread, signal handlers too. */
#define sojourn_mark_begin(name)                                                                   \
    (sojourn_agent_mark_begin ? sojourn_agent_mark_begin(name) : (void)0)
#define sojourn_mark_end(name) (sojourn_agent_mark_end ? sojourn_agent_mark_end(name) : (void)0)

/* Requests to the recorder. sojourn_start and sojourn_stop: record from here on, or not;
 * sojourn_dump_flight: in flight mode, keep the last seconds (a trigger "app" of the policy
 * decides); sojourn_frame_tick: a frame begins; the time between two of one thread is what "jank"
 * triggers without a function look at. Any thread, signal handlers too; a few nanoseconds each.
 */
extern void sojourn_agent_request(int request) __attribute__((weak));
#define sojourn_start() (sojourn_agent_request ? sojourn_agent_request(1) : (void)0)
#define sojourn_stop() (sojourn_agent_request ? sojourn_agent_request(2) : (void)0)
#define sojourn_dump_flight() (sojourn_agent_request ? sojourn_agent_request(3) : (void)0)
#define sojourn_frame_tick() (sojourn_agent_request ? sojourn_agent_request(4) : (void)0)
#else
#define sojourn_start() ((void)0)
#define sojourn_stop() ((void)0)
#define sojourn_dump_flight() ((void)0)
#define sojourn_frame_tick() ((void)0)
#define sojourn_mark_begin(name) ((void)(name))
#define sojourn_mark_end(name) ((void)(name))
#endif

#ifdef __cplusplus
}
#endif

#endif
