/* The registry numbers the processes and modules of a session. It sends the frames that describe
 * them to the collector before any block that refers to them. Thread-safe. */
#ifndef SJ_AGENT_REGISTRY_REGISTRY_H
#define SJ_AGENT_REGISTRY_REGISTRY_H

#include "agent/abi/link.h"
#include "agent/abi/overwritten.h"
#include "agent/planner/plan_ahead.h"
#include "agent/planner/planner.h"
#include "agent/policy/selection.h"
#include "agent/registry/function_index.h"
#include "agent/registry/function_rules.h"
#include "agent/registry/module_plan.h"
#include "agent/runtimes/class_table.h"
#include "agent/session/frame_writer.h"

#include <limits.h>
#include <sys/types.h>

typedef struct sj_registry sj_registry;

typedef struct sj_registry_options {
    sj_frame_writer *writer;       /* borrowed */
    const sj_selection *selection; /* borrowed */
    sj_function_rules *rules;      /* receives the names of functions; borrowed; NULL: none */
    const char *runtime_directory; /* directory for plan files; borrowed */
    const char *cache_directory;   /* NULL: plans are not cached */
    const sj_journal *journal;     /* borrowed; NULL: none */
    /* filled and read if the selection chooses by class; borrowed; NULL: none */
    sj_class_table *classes;
    /* Directory in which an emulator looks for modules first; NULL or "": none. */
    const char *sysroot;
    uint32_t plan_threads; /* see sj_planner_options */
    /* the planning of the program itself, into the same cache; borrowed; NULL: none */
    sj_plan_ahead *ahead;
    /* How long a process waits for all its plans together. Plans that take longer are made on other
     * threads while the program runs. 0: no limit. The agent waits for each reply for
     * SJ_LINK_TIMEOUT_MS at most. */
    uint32_t plan_wait_ms;
    bool counts_calls; /* the recording counts calls, so methods of runtimes are not recorded */
} sj_registry_options;

enum { SJ_REGISTRY_SKIPS = 32 }; /* greater than the number of values of sj_skip */

typedef struct sj_registry_counters {
    uint64_t processes;
    uint64_t forked; /* number of the processes that began as forks */
    uint64_t modules;
    uint64_t functions; /* number of functions in the tables of planned modules */
    uint64_t hooked;    /* number of hooks in the first process that used each module */
    uint64_t failed;    /* number of planned functions that the agent refused */
    uint64_t filtered;  /* number of functions that the user excluded */
    uint64_t skips[SJ_REGISTRY_SKIPS]; /* number of functions without hooks, indexed by sj_skip */
    uint64_t text_bytes;               /* bytes of code in planned modules */
    uint64_t unknown_text_bytes;       /* bytes of code outside of known functions */
    /* number of modules in which a tenth or more of the code belongs to no known function */
    uint64_t poor_modules;
    char poor_module[256];        /* path of the first such module */
    uint64_t poor_module_percent; /* percentage of its code that belongs to no known function */
    uint64_t hook_ns;             /* CPU time that agents spent on modules */
    uint64_t plan_ns;
    /* number of modules whose plan was late: it was made while the program ran, or never */
    uint64_t late_plans;
    /* number of late modules that got no hooks before the end of the recording */
    uint64_t late_unhooked;
    /* path of the first late module without hooks, else of the first late module */
    char late_module[256];
    uint64_t late_missed_ns;     /* how long the calls of `late_module` are missing */
    uint64_t overwritten;        /* number of functions whose hooks programs have overwritten */
    char first_overwritten[512]; /* the first such function: FILE!NAME */
    uint64_t plan_failures;      /* number of wanted modules that could not be planned */
    char plan_failure[SJ_ERROR_TEXT_BYTES]; /* the first such failure, as text */
    /* number of processes that the recorder could not accept, for example for lack of memory */
    uint64_t unjoined;
    char first_unjoined[128];    /* the first such process, with the reason */
    char unrecorded_runtime[16]; /* the first runtime whose methods are not recorded; "": none */
    /* number of loaded classes of attached JVMs that were retransformed */
    uint32_t jvm_retransformed;
    uint32_t jvm_batches;
    /* number of calls in virtual threads, which are counted but not recorded, in the JVM that
     * reported last */
    uint64_t jvm_virtual_calls;
    /* number of hidden classes without probes, in the JVM that reported last */
    uint32_t jvm_hidden_before;
    uint64_t jvm_total_ns;
    uint64_t jvm_longest_ns;     /* longest time of one batch */
    uint64_t jvm_transformed_ns; /* time that all JVMs have spent transforming classes */
} sj_registry_counters;

/* Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_registry_new(const sj_registry_options *options, sj_registry **registry);
void sj_registry_free(sj_registry *registry);

/* Gives a number to a process whose agent has sent HELLO, and sends its Process frame. If the
 * registry has a living process with this pid, that process has executed another program. Its old
 * entry then ends. Returns SJ_ENOMEM, SJ_ELIMIT, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_process(sj_registry *registry, pid_t pid, pid_t parent_pid,
                                                sj_link_occasion occasion, uint64_t now_ticks,
                                                uint64_t *number);

/* Adds a process to the journal, with the name of its arena. */
void sj_registry_note_arena(sj_registry *registry, uint64_t number, const char *arena_name);

/* Adds a process from the journal of a killed recorder. The numbers must be ascending. Thread-safe.
 * Returns SJ_ENOMEM or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_adopt_process(sj_registry *registry,
                                                  const sj_journal_process *process);

/* Stores the number of the living process `pid`. Returns SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_registry_find_process(sj_registry *registry, pid_t pid,
                                                 uint64_t *number);

/* True if a process began as a fork of another process. */
bool sj_registry_is_forked(sj_registry *registry, uint64_t number);

/* Writes the pids of at most `capacity` processes that have not ended. Returns how many. */
size_t sj_registry_list_living(sj_registry *registry, pid_t *pids, size_t capacity);

/* Sets `*index` to a finished index of the hooked functions of all modules of a process. Release
 * `index` with sj_function_index_deinit. Returns SJ_ENOMEM, SJ_EIO, or SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_index_functions(sj_registry *registry, uint64_t process,
                                                    sj_function_index *index);

/* How a process ended, as far as that is known. */
typedef struct sj_process_end {
    uint64_t ended_ticks;
    bool has_status;
    int wait_status; /* as returned by wait(2) */
    uint32_t disarm_reason;
} sj_process_end;

/* Sends a Process frame with the end of a process. A later call can add the wait status and the
 * reason. */
SJ_MUST_CHECK sj_status sj_registry_end_process(sj_registry *registry, uint64_t number,
                                                const sj_process_end *end);

/* A module for which an agent requests a plan. The pointers are borrowed for the call. */
typedef struct sj_plan_request {
    uint64_t process;
    const sj_link_module *module;
    const char *path; /* path of the module's file in the process */
    uint64_t now_ticks;
    uint64_t asked_ns; /* CLOCK_MONOTONIC */
} sj_plan_request;

typedef struct sj_plan_reply {
    uint32_t first_function;
    char plan_path[PATH_MAX];
    /* plan of generated code, which has no plan file; zeroed for other modules; the caller owns
     * it */
    sj_plan plan;
} sj_plan_reply;

/* Handles a MODULE request. Plans the module, once per session and build-id, and sends Module and
 * Mapping frames. Blocks for up to some seconds for large modules that are not cached.
 *
 * SJ_OK: `*reply` is filled. Returns SJ_EAGAIN if the plan is being made and the process may still
 * wait; then repeat the call with the same request. Returns SJ_EUNSUPPORTED if the selection
 * excludes the module, it cannot be planned, or its plan is late. */
SJ_MUST_CHECK sj_status sj_registry_plan_module(sj_registry *registry,
                                                const sj_plan_request *request,
                                                sj_plan_reply *reply);

/* State of a function under a new selection, indexed by function id. */
typedef enum sj_function_state {
    SJ_FUNCTION_FIXED = 0, /* cannot be hooked in place, so a new selection does not change it */
    SJ_FUNCTION_WANTED = 1,
    SJ_FUNCTION_UNWANTED = 2,
    /* Wanted method of a container. If it is not hooked in place, its runtime records it. It may
     * have no code yet. */
    SJ_FUNCTION_MANAGED = 3,
    SJ_FUNCTION_MANAGED_UNWANTED = 4
} sj_function_state;

typedef struct sj_function_states {
    uint8_t *states; /* [count] sj_function_state; ids from `count` on belong to later modules */
    uint32_t count;
    bool other_modules; /* modules that the old selection excluded may be wanted now */
    bool asks_agents;   /* every agent must request the changes, even if its hooks seem complete */
    /* [count] sj_renewal bits, including those of earlier selections until
     * sj_registry_settle_renewed */
    uint8_t *renewed;
    uint32_t renewed_count; /* number of functions with such bits; 0: none */
} sj_function_states;

void sj_function_states_deinit(sj_function_states *states);

/* Replaces the selection and the rules that receive names; both are borrowed. Later plans follow
 * the new selection. Changes the earlier plans, and sends the frames of the changed modules again.
 * Writes the effect on the functions of earlier plans to `states`. The caller releases it, also
 * after a failure.
 *
 * Returns SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT or SJ_ELIMIT. The old selection then stays, but some
 * modules may already follow the new one. */
SJ_MUST_CHECK sj_status sj_registry_select(sj_registry *registry, const sj_selection *selection,
                                           sj_function_rules *rules, sj_function_states *states);

/* True if a late plan is ready, and some processes do not have its hooks yet. Returns false while
 * another thread uses the registry. Does not block. */
bool sj_registry_has_late(sj_registry *registry);

/* Sets `states` for a transition that only adds the hooks of late plans. Release it with
 * sj_function_states_deinit. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_registry_begin_late(sj_registry *registry, sj_function_states *states);

/* Ends the transition of sj_registry_begin_late. `have_followed` is true if all living processes
 * have applied it. Then reports for how long the calls of each late module are missing. Otherwise
 * the next transition tries again, a limited number of times. */
void sj_registry_settle_late(sj_registry *registry, bool have_followed);

/* Reports the modules that have no hooks at the end. Called once. */
void sj_registry_end_late(sj_registry *registry);

/* Stores that all processes have applied the last selection. Without this call, the next selection
 * includes the renewed functions of the last one. */
void sj_registry_settle_renewed(sj_registry *registry);

/* Reports to the collector which wanted functions (ids, ascending) could not be hooked in a
 * process. Ignores functions of modules that the process does not have. `*reported` is the number
 * of reported functions. Returns SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_missed(sj_registry *registry, uint64_t process,
                                                  const uint32_t *functions, size_t count,
                                                  size_t *reported);

/* Reports and counts the functions whose hooks a process has overwritten. Does not report an empty
 * list. Returns SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_overwritten(sj_registry *registry, uint64_t process,
                                                       const sj_overwritten *found);

/* Begins a review: a process will request hooks that it does not have yet. `prepared` has one byte
 * per function id, which says whether the function has hooks in the process. It is borrowed until
 * sj_registry_end_review. Only one process can be reviewed at a time. */
void sj_registry_begin_review(sj_registry *registry, uint64_t process, const uint8_t *prepared,
                              uint32_t count);
void sj_registry_end_review(sj_registry *registry);

/* Handles a TRANSITION request like sj_registry_plan_module. The plan contains only the wanted
 * functions that have no hooks yet. Returns SJ_EUNSUPPORTED if all have hooks, or the process is
 * not being reviewed. */
SJ_MUST_CHECK sj_status sj_registry_review_module(sj_registry *registry,
                                                  const sj_plan_request *request,
                                                  sj_plan_reply *reply);

/* Handles an IMPORTS request like sj_registry_plan_module. In a review, the plan contains only the
 * imports that have no hooks yet. Returns SJ_EUNSUPPORTED if all have hooks, the module's plan
 * includes them, or library calls are not wanted. */
SJ_MUST_CHECK sj_status sj_registry_plan_imports(sj_registry *registry,
                                                 const sj_plan_request *request,
                                                 sj_plan_reply *reply);

/* Returns `runtimes` (SJ_LINK_RUNTIME bits) adapted to the current selection. Sets the bit of
 * library calls if the selection wants them. Sets or clears the bits for system classes and for
 * superclasses of runtimes that have `filters_classes`. Does not change other bits. */
uint32_t sj_registry_present_runtimes(sj_registry *registry, uint32_t runtimes);

/* Adds a class that a runtime of a process described, because no file describes it. `lineage`
 * contains NUL-terminated names: first the class, then its superclass, and so on. Returns SJ_ENOMEM
 * if out of memory. */
SJ_MUST_CHECK sj_status sj_registry_learn_class(sj_registry *registry, uint64_t process,
                                                sj_slice lineage);

/* Writes the name of a method with the category that defines its code in the process, if there is
 * one. Returns the size in bytes with the NUL; 0: the name does not fit or has the wrong form. */
size_t sj_registry_name_method(sj_registry *registry, uint64_t process, const char *method,
                               uint64_t code, char *name, size_t capacity);

/* Adds the methods that a runtime of a process named as functions of a module called `path`. Sends
 * Module and Mapping frames. On entry, wanted[i] is not 0 if the module of the method's code is
 * recorded. On return, wanted[i] is not 0 if the method is recorded. Returns SJ_ECORRUPT,
 * SJ_ELIMIT, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_add_methods(sj_registry *registry, uint64_t process,
                                                const char *path, sj_slice names, uint32_t count,
                                                uint64_t now_ticks, uint32_t *first_function,
                                                uint8_t *wanted);

/* The reply to an agent about a container. */
typedef struct sj_container_reply {
    bool has_lines;
    uint32_t first_function; /* function id of token 1 */
    uint32_t count;          /* number of tokens */
    uint8_t *wanted;         /* (count + 7) / 8 bytes, one bit per token; the caller frees them */
    const sj_link_method_values *values; /* borrowed; valid as long as the registry */
    uint32_t value_count;
} sj_container_reply;

/* Handles a container that a runtime of a process has loaded. Adds its methods as functions of a
 * module, once per session and module id. Reads the file at `path`. Sends Module and Mapping
 * frames.
 *
 * Returns SJ_EUNSUPPORTED if no method of the container is wanted. Returns SJ_ENOTFOUND if the file
 * cannot be read. Returns SJ_ELIMIT, SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_container(sj_registry *registry, uint64_t process,
                                                  const sj_link_container *container,
                                                  const char *path, uint64_t now_ticks,
                                                  sj_container_reply *reply);

/* The reply to an agent about a Java class. */
typedef struct sj_class_reply {
    uint32_t first_function; /* function id of the first method */
    uint32_t count;          /* number of methods */
    uint32_t rewritten;      /* number of methods with probes */
    uint32_t selection;      /* sj_class_selection */
    /* the rewritten class; NULL: no method can have probes; the caller frees it */
    uint8_t *bytes;
    size_t size;
} sj_class_reply;

/* Names of a class, in the JVM's internal form. `lineage` contains the NUL-terminated names of its
 * superclasses. */
typedef struct sj_class_texts {
    sj_slice name;
    sj_slice loader;
    sj_slice lineage;
    sj_slice host; /* host of a hidden class */
} sj_class_texts;

/* Handles a Java class that a process is about to define. Adds its methods as functions of a
 * module, once per session, loader and bytes. Sends Module and Mapping frames. Adds probes to the
 * wanted methods. Of `texts`, uses the loader and the host. A hidden class is selected and named by
 * its host.
 *
 * Returns SJ_EUNSUPPORTED if no method of the class is wanted, the class has probes already, or the
 * bytes are not a class file. Returns SJ_ELIMIT, SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_class(sj_registry *registry, uint64_t process,
                                              const sj_link_class *class,
                                              const sj_class_texts *texts, sj_slice bytes,
                                              uint64_t now_ticks, sj_class_reply *reply);

/* True if a class that a process has loaded must be transformed again: its probes differ from those
 * that the selection asks for. */
bool sj_registry_choose_class(sj_registry *registry, uint64_t process,
                              const sj_link_loaded_class *loaded, const sj_class_texts *texts);

/* If `is_out` is true, sj_registry_leave_out excludes Java methods from the recording of a process
 * because of their cost. Else it includes them again. The change takes effect when their classes
 * are next transformed. The function moves functions that are not Java methods to the front of
 * `functions`, in their order, and returns their number.
 *
 * sj_registry_leave_out_none includes all methods of all processes again. With both functions,
 * muted methods stay muted until sj_registry_unmute_found. */
size_t sj_registry_leave_out(sj_registry *registry, uint64_t process, uint32_t *functions,
                             size_t count, bool is_out);
void sj_registry_leave_out_none(sj_registry *registry);

/* Methods that a process leaves out because of their cost. */
typedef struct sj_left_out_choice {
    uint64_t process;
    uint32_t *methods;
    size_t count;
    bool (*is_rare)(void *context, uint32_t function); /* True if the method's probes may stay */
    void *context;
} sj_left_out_choice;

/* Mutes those left-out methods that keep their probes: a muted method's probes record nothing.
 * Methods of hidden classes always keep their probes. Methods of another class keep them if no
 * values are recorded and `is_rare` is true for all methods of that class in `choice`. Moves the
 * muted methods to the front of `methods` and returns their number. */
size_t sj_registry_mute(sj_registry *registry, const sj_left_out_choice *choice);

/* sj_registry_find_muted moves the muted methods to the front of `methods` and returns their
 * number. sj_registry_unmute_found does the same, and stores that these methods are recorded again.
 * sj_registry_find_all_muted writes the muted methods of a process, at most `capacity`, and returns
 * their number. */
size_t sj_registry_find_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                              size_t count);
size_t sj_registry_unmute_found(sj_registry *registry, uint64_t process, uint32_t *methods,
                                size_t count);
size_t sj_registry_find_all_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                                  size_t capacity);

/* Plans code that a runtime has generated for functions of the session. Reports the functions that
 * cannot be hooked. `file` is the content of the file that belongs to an sj_link_code of the
 * process. Sets reply->plan; reply->first_function has no meaning. Returns SJ_ECORRUPT,
 * SJ_EUNSUPPORTED, SJ_ENOMEM, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_registry_plan_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count,
                                                   sj_plan_reply *reply);

/* Stores which instructions of methods ran in a process. `words` are those of an sj_link_lines. If
 * `is_last` is true, then reports the lines of these instructions. Returns SJ_ENOMEM, or errors of
 * the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_lines(sj_registry *registry, const uint32_t *words,
                                              uint32_t count, bool is_last, uint64_t now_ticks);

/* Reports why it is unknown which lines run in a process. Returns errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_lines(sj_registry *registry, uint64_t process,
                                                    sj_no_lines reason, uint64_t now_ticks);

/* Reports why the methods of a process's Mono runtime are not recorded (monitor "mono"). Returns
 * SJ_ECORRUPT, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_methods(sj_registry *registry, uint64_t process,
                                                      const sj_link_no_methods *no_methods,
                                                      uint64_t now_ticks);

/* Reports the state of a process's Java classes (monitor "jvm"). Returns SJ_ECORRUPT, or errors of
 * sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_registry_report_jvm(sj_registry *registry, uint64_t process,
                                               const sj_link_jvm_state *state, uint64_t now_ticks);

/* Counts and reports a process that sent HELLO and cannot be recorded (monitor "recorder", kind
 * "not_recorded"). Thread-safe. */
void sj_registry_note_unjoined(sj_registry *registry, pid_t pid, sj_status reason);

/* Counts and reports a module, or another part of a program, that cannot be recorded, as
 * sj_registry_note_unjoined does. `what` names it. Thread-safe. */
void sj_registry_note_unplanned(sj_registry *registry, const char *what, sj_status reason);

/* Reports the numbers of processes and modules that were not recorded, unless the last report has
 * them already. Call it at the end of the recording. Thread-safe. */
void sj_registry_end_unrecorded(sj_registry *registry);

/* Reports what a process said about a thread that is stalled (monitor "stall"). `json` is a JSON
 * object. Returns SJ_ECORRUPT if it is not an object. Returns errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_registry_report_stall(sj_registry *registry, uint64_t process,
                                                 sj_slice json, uint64_t now_ticks);

/* A method, and the class of an object on which it was called for the first time. */
typedef struct sj_receiver_pair {
    uint64_t isa;      /* first word of the object */
    uint32_t function; /* id of the method's function */
    /* Set by sj_registry_add_receivers: the function that stands for the method with receivers of
     * that class. It is `function` itself if the class defines the method or is not known. */
    uint32_t result;
} sj_receiver_pair;

/* Finds or adds the function for each pair, and sends the frames of the added functions. Returns
 * SJ_ENOMEM, SJ_ELIMIT, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                                  sj_receiver_pair *pairs, size_t count,
                                                  uint64_t now_ticks);

/* Reports that generated code is not hooked. `file` and `count` are those of
 * sj_registry_plan_generated. `skip` is the reason, an sj_skip. Returns SJ_ECORRUPT, SJ_ENOMEM, or
 * errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_skip_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count, uint32_t skip);

/* A method, as -[Class selector], and its new code in the process. */
typedef struct sj_replaced_code {
    uint64_t code;
    const char *name;
} sj_replaced_code;

/* Stores which code a program gave to its methods at one moment. If exactly one method has the code
 * of a function, later calls of the function count as calls of another function with that method's
 * name. Code that several methods share keeps its own name. Returns SJ_EINVAL if `count` exceeds
 * SJ_LINK_REPLACED_METHODS_MAX. Returns SJ_ENOMEM, SJ_ELIMIT, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_replace_methods(sj_registry *registry, uint64_t process,
                                                    const sj_replaced_code *changes, size_t count,
                                                    uint64_t now_ticks);

/* From `ticks` on, calls of `function` in a process count as calls of `named`. */
typedef struct sj_renamed_function {
    uint64_t process;
    uint64_t ticks;
    uint32_t function;
    uint32_t named;
} sj_renamed_function;

/* sj_registry_renamed_count returns the number of sj_renamed_function of all processes, without a
 * lock. sj_registry_list_renamed copies at most `capacity` of them, from index `first` on, in the
 * order of their times. It returns the number that it copied. */
size_t sj_registry_renamed_count(const sj_registry *registry);
size_t sj_registry_list_renamed(sj_registry *registry, size_t first, sj_renamed_function *list,
                                size_t capacity);

/* Reports functions (ids, in any order) of generated code that have no hooks in a process. Returns
 * SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_generated(sj_registry *registry, uint64_t process,
                                                     const sj_link_failure *failures, size_t count);

/* Stores what the agent did with a plan. Sends an Unhooked frame if the agent refused some
 * functions. Returns SJ_ENOTFOUND if no module has the function, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_applied(sj_registry *registry, uint64_t process,
                                            const sj_link_applied *applied,
                                            const sj_link_failure *failures, size_t failure_count);

/* Sends the end of the mapping at `bias` in a process. Returns SJ_ENOTFOUND if the process has no
 * such mapping. */
SJ_MUST_CHECK sj_status sj_registry_unloaded(sj_registry *registry, uint64_t process, uint64_t bias,
                                             uint64_t now_ticks);

void sj_registry_get_counters(sj_registry *registry, sj_registry_counters *counters);

#endif
