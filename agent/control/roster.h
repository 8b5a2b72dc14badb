/* The roster: processes and modules of the session, with their numbers, and the frames that tell
 * the collector of them before any block that needs them. Any thread. */
#ifndef SJ_AGENT_CONTROL_ROSTER_H
#define SJ_AGENT_CONTROL_ROSTER_H

#include "agent/control/class_table.h"
#include "agent/control/emitter.h"
#include "agent/control/function_index.h"
#include "agent/control/rules.h"
#include "agent/control/selection.h"
#include "agent/lifecycle/link.h"
#include "agent/planner/planner.h"

#include <sys/types.h>

typedef struct sj_roster sj_roster;

typedef struct sj_roster_options {
    sj_emitter *emitter;           /* borrowed */
    const sj_selection *selection; /* borrowed */
    sj_rules *rules;               /* told the names of functions; borrowed; NULL: none */
    const char *runtime_directory; /* plan files are put there; borrowed */
    const char *cache_directory;   /* NULL: plans are not cached */
    const sj_journal *journal;     /* borrowed; NULL: none */
    sj_class_table *classes;       /* read where the selection needs it; borrowed; NULL: none */
    /* Where an emulator looks for modules first; NULL or "": nowhere. */
    const char *sysroot;
} sj_roster_options;

enum { SJ_ROSTER_SKIPS = 32 }; /* more than the reasons of sj_skip */

typedef struct sj_roster_counters {
    uint64_t processes;
    uint64_t modules;
    uint64_t functions;              /* in the tables of planned modules */
    uint64_t hooked;                 /* in the first process that used each module */
    uint64_t failed;                 /* planned, refused by the agent */
    uint64_t filtered;               /* left out because the user asked so */
    uint64_t skips[SJ_ROSTER_SKIPS]; /* by sj_skip: why functions were left out */
    uint64_t hook_ns;                /* time that agents spent on modules */
    uint64_t plan_ns;
    uint64_t plan_failures;                 /* wanted modules that could not be planned */
    char plan_failure[SJ_ERROR_TEXT_BYTES]; /* the first of them, as text */
} sj_roster_counters;

SJ_MUST_CHECK sj_status sj_roster_new(const sj_roster_options *options, sj_roster **roster);
void sj_roster_free(sj_roster *roster);

/* sj_roster_add_process numbers a process that said HELLO and sends its Process frame. A pid that
 * is already known and alive has replaced its program (exec): its old entry ends. */
SJ_MUST_CHECK sj_status sj_roster_add_process(sj_roster *roster, pid_t pid, pid_t parent_pid,
                                              sj_link_occasion occasion, uint64_t now_ticks,
                                              uint64_t *number);

/* sj_roster_note_arena writes a process into the journal, with the name of its arena. */
void sj_roster_note_arena(sj_roster *roster, uint64_t number, const char *arena_name);

/* sj_roster_adopt_process takes a process of a killed recorder's journal over. The numbers must
 * come in order. SJ_ENOMEM, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_roster_adopt_process(sj_roster *roster,
                                                const sj_journal_process *process);

/* sj_roster_find_process gives the number of the living process `pid`. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_roster_find_process(sj_roster *roster, pid_t pid, uint64_t *number);

/* sj_roster_list_living writes the pids of processes that have not ended, at most `capacity`;
 * returns how many. */
size_t sj_roster_list_living(sj_roster *roster, pid_t *pids, size_t capacity);

/* sj_roster_index_functions collects the planned functions of all modules of a process. Release
 * with sj_function_index_deinit. SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_roster_index_functions(sj_roster *roster, uint64_t process,
                                                  sj_function_index *index);

/* How a process ended, as far as it is known. */
typedef struct sj_process_end {
    uint64_t ended_ticks;
    bool has_status;
    int wait_status; /* as wait(2) gives it */
    uint32_t disarm_reason;
} sj_process_end;

/* sj_roster_end_process sends the Process frame of the end; later calls only add what is new. */
SJ_MUST_CHECK sj_status sj_roster_end_process(sj_roster *roster, uint64_t number,
                                              const sj_process_end *end);

/* sj_roster_plan_module answers a MODULE: plans it (once per session and build-id) and sends Module
 * and Mapping frames. SJ_OK: `*answer` and `path` (the plan file) are filled. SJ_EUNSUPPORTED: left
 * alone by the selection or because it cannot be planned. Blocking: up to seconds for large ones.
 */
SJ_MUST_CHECK sj_status sj_roster_plan_module(sj_roster *roster, uint64_t process,
                                              const sj_link_module *module, const char *module_path,
                                              uint64_t now_ticks, uint32_t *first_function,
                                              char *path, size_t capacity);

/* What is to become of the functions of a session, by id. */
typedef enum sj_function_state {
    SJ_FUNCTION_FIXED = 0, /* cannot be hooked in place: stays as it is */
    SJ_FUNCTION_WANTED = 1,
    SJ_FUNCTION_UNWANTED = 2
} sj_function_state;

typedef struct sj_function_states {
    uint8_t *states; /* [count] sj_function_state; ids from `count` on are of later modules */
    uint32_t count;
    bool other_modules; /* modules that were left alone may be wanted now */
} sj_function_states;

/* sj_roster_select puts another selection, and the rules that are told of names, in the place of
 * those before (borrowed, like them): plans that are asked for from now on obey it, and the
 * collector is told. `states` says what that means for functions that are planned already; the
 * caller frees states->states. SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT: nothing is selected anew, or only
 * some modules are. */
SJ_MUST_CHECK sj_status sj_roster_select(sj_roster *roster, const sj_selection *selection,
                                         sj_rules *rules, sj_function_states *states);

/* sj_roster_tell_missed tells the collector that functions (ids, ascending) which are wanted could
 * not be hooked in a process, as far as it has their modules; `*told` is how many that were.
 * SJ_ENOMEM, errors of the emitter. */
SJ_MUST_CHECK sj_status sj_roster_tell_missed(sj_roster *roster, uint64_t process,
                                              const uint32_t *functions, size_t count,
                                              size_t *told);

/* sj_roster_begin_review says which functions (bytes by id, borrowed until sj_roster_end_review)
 * have hooks in a process that is going to ask for more. One process at a time. */
void sj_roster_begin_review(sj_roster *roster, uint64_t process, const uint8_t *prepared,
                            uint32_t count);
void sj_roster_end_review(sj_roster *roster);

/* sj_roster_review_module answers a REVIEW like sj_roster_plan_module, with the functions that are
 * wanted and have no hooks yet. SJ_EUNSUPPORTED: there is none, or nobody began a review. */
SJ_MUST_CHECK sj_status sj_roster_review_module(sj_roster *roster, uint64_t process,
                                                const sj_link_module *module,
                                                const char *module_path, uint64_t now_ticks,
                                                uint32_t *first_function, char *path,
                                                size_t capacity);

/* sj_roster_plan_imports answers an IMPORTS like sj_roster_plan_module; in a review, with those
 * that have no hooks yet. SJ_EUNSUPPORTED: there is none, the module's plan has them, or calls of
 * libraries are not wanted. */
SJ_MUST_CHECK sj_status sj_roster_plan_imports(sj_roster *roster, uint64_t process,
                                               const sj_link_module *module,
                                               const char *module_path, uint64_t now_ticks,
                                               uint32_t *first_function, char *path,
                                               size_t capacity);
/* sj_roster_wants_library_calls tells whether the selection of this moment asks for them. */
bool sj_roster_wants_library_calls(sj_roster *roster);

/* sj_roster_learn_class takes what a runtime of a process says of a class: its name and those of
 * its ancestors, nearest first, NUL-terminated. For classes that no file describes. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_roster_learn_class(sj_roster *roster, uint64_t process,
                                              sj_slice lineage);

/* sj_roster_add_methods makes functions of the methods that a runtime of a process named, as a
 * module called `path`, and sends Module and Mapping frames. wanted[i] tells whether the module of
 * the method's code is recorded, and afterwards whether the method is.
 * SJ_ECORRUPT, SJ_ELIMIT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_roster_add_methods(sj_roster *roster, uint64_t process, const char *path,
                                              sj_slice names, uint32_t count, uint64_t now_ticks,
                                              uint32_t *first_function, uint8_t *wanted);

/* A method that was called on an object of some class, for the first time. */
typedef struct sj_receiver_pair {
    uint64_t isa;      /* first word of the object */
    uint32_t function; /* the method's */
    uint32_t result;   /* out: the function of the method for that class, or `function` itself when
                        * the class defines it or is not known */
} sj_receiver_pair;

/* sj_roster_add_receivers makes functions of the pairs, and sends their frames. SJ_ENOMEM,
 * SJ_ELIMIT, errors of the emitter. */
SJ_MUST_CHECK sj_status sj_roster_add_receivers(sj_roster *roster, uint64_t process,
                                                sj_receiver_pair *pairs, size_t count,
                                                uint64_t now_ticks);

/* sj_roster_applied notes what the agent did with a plan; sends Unhooked when it refused some. */
SJ_MUST_CHECK sj_status sj_roster_applied(sj_roster *roster, uint64_t process,
                                          const sj_link_applied *applied,
                                          const sj_link_failure *failures, size_t failure_count);

/* sj_roster_unloaded sends the end of a mapping. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_roster_unloaded(sj_roster *roster, uint64_t process, uint64_t bias,
                                           uint64_t now_ticks);

void sj_roster_get_counters(sj_roster *roster, sj_roster_counters *counters);

#endif
