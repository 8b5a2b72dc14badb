/* Sojourn: the interface of a program to its tracer. C89 and C++.
 *
 * A program needs no library to use it. Cost: one comparison per call in an untraced program; one
 * call and return once a tracer has attached. Works in position-independent programs and libraries,
 * which compilers build by default. In a program linked with -no-pie the linker turns all of these
 * calls into no operations. */
#ifndef SOJOURN_H
#define SOJOURN_H

#ifdef __cplusplus
extern "C" {
#endif

/* The agent's own functions; call the macros below. */
#if defined(__GNUC__)
extern void sojourn_agent_mark_begin(const char *name) __attribute__((weak));
extern void sojourn_agent_mark_end(const char *name) __attribute__((weak));

/* sojourn_mark_begin and sojourn_mark_end bracket a phase or a test case. They copy `name`, at most
 * 63 bytes of it. Any thread and any signal handler may call them. */
#define sojourn_mark_begin(name)                                                                   \
    (sojourn_agent_mark_begin ? sojourn_agent_mark_begin(name) : (void)0)
#define sojourn_mark_end(name) (sojourn_agent_mark_end ? sojourn_agent_mark_end(name) : (void)0)

/* Requests to the recorder. Any thread and any signal handler may call them; each call takes a few
 * nanoseconds.
 *
 * sojourn_start starts recording, sojourn_stop stops it.
 * sojourn_dump_flight asks flight mode to keep the last seconds. A trigger "app" of the policy
 * decides how.
 * sojourn_frame_tick marks the start of a frame. A "jank" trigger that names no function compares
 * the time between consecutive ticks of one thread. */
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
