/* Policy: what is recorded, in which mode, at what cost, and what triggers more. A JSON document
 * (policy.schema.json) describes it. Options and commands are converted into such a document. */
#ifndef SJ_AGENT_POLICY_POLICY_H
#define SJ_AGENT_POLICY_POLICY_H

#include "agent/abi/zombies.h"
#include "agent/policy/pattern.h"
#include "agent/policy/redaction.h"
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
    SJ_POLICY_TRACE = 0,   /* stores every call */
    SJ_POLICY_PROFILE = 1, /* stores sums per call path, computed on the device */
    SJ_POLICY_FLIGHT = 2   /* keeps the last seconds; a trigger sends them */
} sj_policy_mode;

typedef enum sj_trigger_event {
    SJ_TRIGGER_SLOW_CALL = 0, /* a call of `function` took longer than `limit_ns` */
    /* One of these took longer than `limit_ns`, `times` times within `within_ns`: a call of
     * `function`, the time between two frame ticks, or a turn of the event loop of `loop`. */
    SJ_TRIGGER_JANK = 1,
    SJ_TRIGGER_RATE = 2,     /* `function` was called `times` times within `within_ns` */
    SJ_TRIGGER_NTH_CALL = 3, /* call number `times` of `function` */
    SJ_TRIGGER_MARK = 4,     /* a mark whose name matches `name` starts */
    SJ_TRIGGER_COMMAND = 5,  /* the command `sojourn trigger NAME` */
    SJ_TRIGGER_CRASH = 6,    /* a process crashes */
    SJ_TRIGGER_APP = 7,      /* the program asks for it (sojourn.h) */
    SJ_TRIGGER_VALUE = 8     /* a value met the condition of a rule whose name matches `name` */
} sj_trigger_event;

enum { SJ_TRIGGER_EVENTS = 9 };

typedef enum sj_trigger_action {
    SJ_ACTION_START = 1,
    SJ_ACTION_STOP = 2,
    SJ_ACTION_DUMP = 4, /* flight mode: sends the last seconds as a child session */
    SJ_ACTION_MARK = 8,
    SJ_ACTION_STACKS = 16 /* native stacks of all threads */
} sj_trigger_action;

enum { SJ_TRIGGER_ACTIONS = 5 };

typedef struct sj_trigger {
    sj_trigger_event event;
    sj_pattern subject; /* function, mark or command; text NULL: frame ticks, or any */
    sj_pattern loop;    /* name of the threads whose event loop is watched; text NULL: none */
    uint64_t limit_ns;
    uint64_t times;
    uint64_t within_ns;
    uint64_t pause_ns; /* minimum time between two firings */
    uint64_t most;     /* maximum number of firings in a session; 0: no limit */
    unsigned actions;  /* bits of sj_trigger_action */
} sj_trigger;

/* Records one call in `n` of the functions that match. */
typedef struct sj_policy_sampling {
    sj_pattern function;
    uint32_t n;
} sj_policy_sampling;

/* SJ_POLICY_RESOLUTION_NS is the default of resolution_ns: a pair of probes alone changes times by
 * more. */
enum { SJ_POLICY_RESOLUTION_NS = 10, SJ_POLICY_TIMED = 32 };

typedef struct sj_policy {
    char *document; /* the JSON text that was parsed; owned */
    char name[SJ_POLICY_NAME_BYTES];
    uint32_t version; /* version that the author of the document chose */
    sj_policy_mode mode;
    bool allows_unmatched; /* names that match nothing are not an error */
    bool begins_paused;    /* records nothing until a trigger or the program says "start" */
    bool counts_memory; /* counts what every thread allocates, not only calls of some functions */
    double budget_percent; /* percent of the program's CPU time; 0: no budget */
    sj_selection selection;
    uint32_t max_depth; /* deeper calls are not recorded; 0: no limit */
    uint64_t minimum_ns;
    /* resolution of stored times; 0: the clock's resolution */
    uint64_t resolution_ns;
    sj_pattern threads[SJ_POLICY_THREADS]; /* records only threads with these names; empty: all */
    size_t thread_count;
    sj_policy_sampling sampled[SJ_POLICY_SAMPLED];
    size_t sampled_count;
    /* counts instead of times the calls of short functions that are called often */
    bool counts_calls;
    sj_pattern timed[SJ_POLICY_TIMED]; /* functions that are always timed */
    size_t timed_count;
    uint64_t profile_interval_ns;
    uint64_t profile_window_ns; /* 0: one window until the end */
    uint64_t flight_before_ns;
    uint64_t flight_after_ns;
    uint64_t flight_bytes;
    sj_trigger triggers[SJ_POLICY_TRIGGERS];
    size_t trigger_count;
    uint32_t chunks_per_thread; /* 0: all */
    bool drop_when_full;
    uint32_t block_ms;                /* maximum wait for a free buffer; 0: the default */
    sj_zombie_settings zombies;       /* one_in 0: uses of freed memory are not watched */
    uint32_t zombie_sessions_percent; /* percentage of sessions that watch */
    sj_redaction redaction;
} sj_policy;

/* Parses a document. `origin` (a file name, "flags") starts the error message: "ORIGIN:LINE:COLUMN:
 * what is wrong; did you mean ...?". Returns SJ_EINVAL, SJ_ELIMIT or SJ_ENOMEM; `*policy` is then
 * freed. */
SJ_MUST_CHECK sj_status sj_policy_parse(const char *text, size_t size, const char *origin,
                                        sj_policy *policy, sj_error *error);
/* Returns the settings for a session. They do not watch uses of freed memory if the session is not
 * among zombie_sessions_percent of all sessions. All processes of a session get the same
 * settings. */
sj_zombie_settings sj_policy_zombies_of(const sj_policy *policy, const sj_session_id *session);

void sj_policy_free(sj_policy *policy); /* safe on a zeroed policy */

/* Returns the document of a shipped policy, or NULL. */
const char *sj_policy_preset(const char *name);
extern const char *const sj_policy_presets[]; /* names, NULL-terminated */

const char *sj_policy_mode_text(sj_policy_mode mode);
const char *sj_trigger_event_text(sj_trigger_event event);
const char *sj_trigger_action_text(unsigned place); /* name of the action of bit number `place` */

/* True if a trigger is about event loops. */
bool sj_policy_watches_loops(const sj_policy *policy);

/* Messages for a process that was not started with such a policy. A call that waits in a library
 * returns through the agent, so the agent could not be unloaded. */
#define SJ_POLICY_LOOPS_UNSEEN                                                                     \
    "triggers: event loops are watched only when the program was started with such a policy"
#define SJ_POLICY_LIBRARIES_UNBOUND                                                                \
    "modules.library_calls: only in programs that `sojourn record` started; one in which a call "  \
    "waits in a library could not be left"

enum { SJ_POLICY_MISSED = 2 };

/* Lists the parts of a policy that a process cannot obey; returns the number of texts. `attached`:
 * the process was attached to. */
size_t sj_policy_missed(const sj_policy *policy, bool attached,
                        const char *texts[SJ_POLICY_MISSED]);

#endif
