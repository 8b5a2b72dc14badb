/* The policy: what is recorded, in which mode, at what cost, and what triggers more. One JSON
 * document (policy.schema.json) says it; flags and commands are turned into the same document. */
#ifndef SJ_AGENT_POLICY_POLICY_H
#define SJ_AGENT_POLICY_POLICY_H

#include "agent/abi/zombies.h"
#include "agent/policy/pattern.h"
#include "agent/policy/selection.h"

#include <stdint.h>

enum {
    SJ_POLICY_FORMAT = 1, /* value of the key "policy" */
    SJ_POLICY_MAX_BYTES = 256 * 1024,
    SJ_POLICY_THREADS = 32,
    SJ_POLICY_SAMPLED = 32,
    SJ_POLICY_TRIGGERS = 32,
    SJ_POLICY_NAME_BYTES = 64
};

typedef enum sj_policy_mode {
    SJ_POLICY_TRACE = 0,   /* every call goes to the store */
    SJ_POLICY_PROFILE = 1, /* sums per call path, made on the device */
    SJ_POLICY_FLIGHT = 2   /* the last seconds are kept; a trigger ships them */
} sj_policy_mode;

typedef enum sj_trigger_event {
    SJ_TRIGGER_SLOW_CALL = 0, /* a call of `function` took longer than `limit_ns` */
    SJ_TRIGGER_JANK = 1,      /* the same, or the time between two frame ticks, or a turn of the
                                 event loop of `loop`, `times` times within `within_ns` */
    SJ_TRIGGER_RATE = 2,      /* `function` was called more than `times` times within `within_ns` */
    SJ_TRIGGER_NTH_CALL = 3,  /* the call number `times` of `function` */
    SJ_TRIGGER_MARK = 4,      /* a mark whose name matches `name` begins */
    SJ_TRIGGER_COMMAND = 5,   /* `sojourn trigger NAME` */
    SJ_TRIGGER_CRASH = 6,     /* a process ends without order */
    SJ_TRIGGER_APP = 7,       /* the program asks (sojourn.h) */
    SJ_TRIGGER_VALUE = 8      /* a value met the condition of a rule whose name matches `name` */
} sj_trigger_event;

enum { SJ_TRIGGER_EVENTS = 9 };

typedef enum sj_trigger_action {
    SJ_ACTION_START = 1,
    SJ_ACTION_STOP = 2,
    SJ_ACTION_DUMP = 4, /* flight mode: ship the last seconds as a child session */
    SJ_ACTION_MARK = 8,
    SJ_ACTION_STACKS = 16 /* native stacks of all threads */
} sj_trigger_action;

enum { SJ_TRIGGER_ACTIONS = 5 };

typedef struct sj_trigger {
    sj_trigger_event event;
    sj_pattern subject; /* function, mark or command; text NULL: frame ticks, or any */
    sj_pattern loop;    /* threads whose event loop is watched, by name; text NULL: none */
    uint64_t limit_ns;
    uint64_t times;
    uint64_t within_ns;
    uint64_t pause_ns; /* not again before this has passed since it fired */
    uint64_t most;     /* fires at most so often in a session; 0: no limit */
    unsigned actions;  /* sj_trigger_action */
} sj_trigger;

/* One call in `n` of the functions that match. */
typedef struct sj_policy_sampling {
    sj_pattern function;
    uint32_t n;
} sj_policy_sampling;

/* A pair of probes alone moves times by more than that. */
enum { SJ_POLICY_RESOLUTION_NS = 10, SJ_POLICY_TIMED = 32 };

typedef struct sj_policy {
    char *document; /* the JSON text that it was read from; owned */
    char name[SJ_POLICY_NAME_BYTES];
    uint32_t version; /* of the document, as its author counts */
    sj_policy_mode mode;
    bool allows_unmatched; /* names that match nothing are no mistake */
    bool begins_paused;    /* nothing is recorded before a trigger or the program says "start" */
    bool counts_memory;    /* what every thread allocates, too, not only calls of some functions */
    double budget_percent; /* of the program's CPU time; 0: none */
    sj_selection selection;
    uint32_t max_depth; /* calls deeper than this are not recorded; 0: all are */
    uint64_t minimum_ns;
    uint64_t resolution_ns;                /* of the times that are kept; 0: the clock's */
    sj_pattern threads[SJ_POLICY_THREADS]; /* only these, by name; none: all */
    size_t thread_count;
    sj_policy_sampling sampled[SJ_POLICY_SAMPLED];
    size_t sampled_count;
    bool counts_calls;                 /* of short functions that are called a lot */
    sj_pattern timed[SJ_POLICY_TIMED]; /* not of these */
    size_t timed_count;
    uint64_t profile_interval_ns;
    uint64_t profile_window_ns; /* 0: until the end */
    uint64_t flight_before_ns;
    uint64_t flight_after_ns;
    uint64_t flight_bytes;
    sj_trigger triggers[SJ_POLICY_TRIGGERS];
    size_t trigger_count;
    uint32_t chunks_per_thread; /* 0: all */
    bool drop_when_full;
    uint32_t block_ms;                /* 0: the default */
    sj_zombie_settings zombies;       /* one_in 0: uses of freed memory are not watched */
    uint32_t zombie_sessions_percent; /* share of the sessions that watch */
} sj_policy;

/* sj_policy_parse reads a document. `origin` (a file's name, "flags") begins the message of an
 * error: "ORIGIN:LINE:COLUMN: what is wrong; did you mean ...?". SJ_EINVAL, SJ_ELIMIT, SJ_ENOMEM;
 * `*policy` is freed then. */
SJ_MUST_CHECK sj_status sj_policy_parse(const char *text, size_t size, const char *origin,
                                        sj_policy *policy, sj_error *error);
/* sj_policy_zombies_of returns what a session is to watch: nothing, if it is none of the share that
 * watches. The same for every process of the session. */
sj_zombie_settings sj_policy_zombies_of(const sj_policy *policy, const sj_session_id *session);

void sj_policy_free(sj_policy *policy); /* safe on a zeroed one */

/* sj_policy_preset returns the document of a shipped policy, or NULL. */
const char *sj_policy_preset(const char *name);
extern const char *const sj_policy_presets[]; /* names, NULL-terminated */

const char *sj_policy_mode_text(sj_policy_mode mode);
const char *sj_trigger_event_text(sj_trigger_event event);
const char *sj_trigger_action_text(unsigned place); /* of bit `place` */

/* sj_policy_watches_loops returns whether a trigger is about event loops. */
bool sj_policy_watches_loops(const sj_policy *policy);

/* What is to be said of such a policy that a process gets which was not started with one. A call
 * that waits in a library returns to the agent, so that its program could not be left. */
#define SJ_POLICY_LOOPS_UNSEEN                                                                     \
    "triggers: event loops are watched only when the program was started with such a policy"
#define SJ_POLICY_LIBRARIES_UNBOUND                                                                \
    "modules.library_calls: only in programs that `sojourn record` started; one in which a call "  \
    "waits in a library could not be left"

enum { SJ_POLICY_MISSED = 2 };

/* sj_policy_missed lists what of a policy a process does not get; returns how many texts.
 * `attached`: it is attached to. */
size_t sj_policy_missed(const sj_policy *policy, bool attached,
                        const char *texts[SJ_POLICY_MISSED]);

#endif
