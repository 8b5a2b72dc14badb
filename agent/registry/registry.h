/* The registry numbers the processes and modules of a session. It sends the frames that report them
 * to the collector before any block that needs them. Any thread. */
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
    sj_class_table *classes;       /* read if the selection needs classes; borrowed; NULL: none */
    /* Directory in which an emulator looks for modules first; NULL or "": none. */
    const char *sysroot;
    uint32_t plan_threads; /* see sj_planner_options */
    sj_plan_ahead *ahead;  /* planning of the program into the same cache; borrowed; NULL: none */
    /* How long a process waits for all its plans together. Plans that take longer are made on other
     * threads while the program runs. 0: no limit. The agent waits SJ_LINK_TIMEOUT_MS for any
     * answer. */
    uint32_t plan_wait_ms;
    bool counts_calls; /* the recording counts calls, so methods of runtimes are not recorded */
} sj_registry_options;

enum { SJ_REGISTRY_SKIPS = 32 }; /* more than there are values of sj_skip */

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
    /* number of modules without a plan in time: the plan came while the program ran, or never */
    uint64_t late_plans;
    uint64_t late_unhooked; /* number of these modules that got no hooks before the end */
    /* path of the first late module without hooks, else of the first late module */
    char late_module[256];
    uint64_t late_missed_ns;     /* how long the calls of that module are missing */
    uint64_t overwritten;        /* number of functions whose hooks programs have overwritten */
    char first_overwritten[512]; /* the first such function: FILE!NAME */
    uint64_t plan_failures;      /* number of wanted modules that could not be planned */
    char plan_failure[SJ_ERROR_TEXT_BYTES]; /* the first such failure, as text */
    char unrecorded_runtime[16]; /* the first runtime whose methods are not recorded; "": none */
    /* number of loaded classes of attached JVMs that were retransformed */
    uint32_t jvm_retransformed;
    uint32_t jvm_batches;
    /* number of calls in virtual threads, which are only counted; of the latest JVM that reported
     * them */
    uint64_t jvm_virtual_calls;
    /* number of hidden classes without probes, in the latest JVM asked */
    uint32_t jvm_hidden_before;
    uint64_t jvm_total_ns;
    uint64_t jvm_longest_ns;     /* longest time of one batch */
    uint64_t jvm_transformed_ns; /* time that all JVMs have spent transforming classes */
} sj_registry_counters;

SJ_MUST_CHECK sj_status sj_registry_new(const sj_registry_options *options, sj_registry **registry);
void sj_registry_free(sj_registry *registry);

/* Numbers a process that has sent HELLO and sends its Process frame. If a process with this pid is
 * known and alive, that process has executed a new program: its old entry ends. */
SJ_MUST_CHECK sj_status sj_registry_add_process(sj_registry *registry, pid_t pid, pid_t parent_pid,
                                                sj_link_occasion occasion, uint64_t now_ticks,
                                                uint64_t *number);

/* Writes a process into the journal, with the name of its arena. */
void sj_registry_note_arena(sj_registry *registry, uint64_t number, const char *arena_name);

/* Adds a process from the journal of a killed recorder. The numbers must be ascending. Thread-safe.
 * SJ_ENOMEM, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_adopt_process(sj_registry *registry,
                                                  const sj_journal_process *process);

/* Stores the number of the living process `pid`. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_registry_find_process(sj_registry *registry, pid_t pid,
                                                 uint64_t *number);

/* True if a process began as a fork of another process. */
bool sj_registry_is_forked(sj_registry *registry, uint64_t number);

/* Writes the pids of at most `capacity` processes that have not ended. Returns how many. */
size_t sj_registry_list_living(sj_registry *registry, pid_t *pids, size_t capacity);

/* Collects the planned functions of all modules of a process. Release `index` with
 * sj_function_index_deinit. SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_index_functions(sj_registry *registry, uint64_t process,
                                                    sj_function_index *index);

/* How a process ended, as far as that is known. */
typedef struct sj_process_end {
    uint64_t ended_ticks;
    bool has_status;
    int wait_status; /* as returned by wait(2) */
    uint32_t disarm_reason;
} sj_process_end;

/* Sends the Process frame of the end. A later call can add the status and the reason. */
SJ_MUST_CHECK sj_status sj_registry_end_process(sj_registry *registry, uint64_t number,
                                                const sj_process_end *end);

/* A module of a process that an agent asks about. The pointers are borrowed for the call. */
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
    /* plan of generated code, instead of a file; owned by the receiver; else zeroed */
    sj_plan plan;
} sj_plan_reply;

/* Answers a MODULE request. Plans the module, once per session and build-id, and sends Module and
 * Mapping frames. Blocks for up to some seconds for large modules that are not cached.
 *
 * SJ_OK: `*reply` is filled. SJ_EAGAIN: the plan is being made and the process may still wait;
 * ask again with the same request. SJ_EUNSUPPORTED: the selection excludes the module, it cannot be
 * planned, or its plan is late. */
SJ_MUST_CHECK sj_status sj_registry_plan_module(sj_registry *registry,
                                                const sj_plan_request *request,
                                                sj_plan_reply *reply);

/* State of a function under a new selection, indexed by function id. */
typedef enum sj_function_state {
    SJ_FUNCTION_FIXED = 0, /* cannot be hooked in place: does not change */
    SJ_FUNCTION_WANTED = 1,
    SJ_FUNCTION_UNWANTED = 2,
    /* Method of a container. Its runtime records it unless it is hooked in place, or it has no code
     * yet. */
    SJ_FUNCTION_MANAGED = 3,
    SJ_FUNCTION_MANAGED_UNWANTED = 4
} sj_function_state;

typedef struct sj_function_states {
    uint8_t *states; /* [count] sj_function_state; ids from `count` on belong to later modules */
    uint32_t count;
    bool other_modules; /* modules that were excluded may be wanted now */
    bool asks_agents;   /* all agents ask for changes, even if their hooks seem complete */
    /* [count] sj_renewal bits, including those of earlier selections until
     * sj_registry_settle_renewed */
    uint8_t *renewed;
    uint32_t renewed_count; /* number of functions with such bits; 0: none */
} sj_function_states;

void sj_function_states_deinit(sj_function_states *states);

/* Replaces the selection and the rules that receive names; both are borrowed. Plans requested from
 * now on follow the selection, and the collector is notified. `states` receives the effect on
 * planned functions. The caller releases it, also after a failure.
 *
 * SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT: no module follows the new selection, or only some do. */
SJ_MUST_CHECK sj_status sj_registry_select(sj_registry *registry, const sj_selection *selection,
                                           sj_function_rules *rules, sj_function_states *states);

/* True if a plan is ready whose hooks some programs still lack. Also false while a process waits
 * for another plan. Does not block. */
bool sj_registry_has_late(sj_registry *registry);

/* Sets `states` for a transition that only adds the hooks of late plans. Release it with
 * sj_function_states_deinit. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_begin_late(sj_registry *registry, sj_function_states *states);

/* Ends the transition of sj_registry_begin_late. If all living processes have applied it, reports
 * how long the calls are missing. Otherwise the next transition tries again, a limited number of
 * times. */
void sj_registry_settle_late(sj_registry *registry, bool have_followed);

/* Reports the modules that have no hooks at the end. Called once. */
void sj_registry_end_late(sj_registry *registry);

/* Notes that all processes have applied the last selection. Otherwise the next selection includes
 * its renewed functions. */
void sj_registry_settle_renewed(sj_registry *registry);

/* Reports to the collector which wanted functions (ids, ascending) could not be hooked in a
 * process. Ignores functions of modules that the process does not have. `*reported` is the number
 * of reported functions. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_missed(sj_registry *registry, uint64_t process,
                                                  const uint32_t *functions, size_t count,
                                                  size_t *reported);

/* Reports and counts the functions whose hooks a process has overwritten. Does not report an empty
 * list. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_overwritten(sj_registry *registry, uint64_t process,
                                                       const sj_overwritten *found);

/* Says which functions have hooks in a process that will ask for more. `prepared` has a byte per
 * function id and is borrowed until sj_registry_end_review. One process at a time. */
void sj_registry_begin_review(sj_registry *registry, uint64_t process, const uint8_t *prepared,
                              uint32_t count);
void sj_registry_end_review(sj_registry *registry);

/* Answers a TRANSITION request like sj_registry_plan_module, with the wanted functions that have no
 * hooks yet. SJ_EUNSUPPORTED: there are none, or no review was begun. */
SJ_MUST_CHECK sj_status sj_registry_review_module(sj_registry *registry,
                                                  const sj_plan_request *request,
                                                  sj_plan_reply *reply);

/* Answers an IMPORTS request like sj_registry_plan_module; in a review, with the imports that have
 * no hooks yet. SJ_EUNSUPPORTED: there are none, the module's plan includes them, or library calls
 * are not wanted. */
SJ_MUST_CHECK sj_status sj_registry_plan_imports(sj_registry *registry,
                                                 const sj_plan_request *request,
                                                 sj_plan_reply *reply);

/* Updates SJ_LINK_RUNTIME bits to the current selection: library calls, system classes, and
 * ancestors of classes. The latter two concern runtimes that show their classes. Returns the other
 * bits unchanged. Any thread. */
uint32_t sj_registry_present_runtimes(sj_registry *registry, uint32_t runtimes);

/* Adds a class that a runtime of a process described, because no file describes it. `lineage` holds
 * its name and those of its ancestors, nearest first, NUL-terminated. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_learn_class(sj_registry *registry, uint64_t process,
                                                sj_slice lineage);

/* Writes the name of a method with the category that defines its code in the process, if there is
 * one. Returns the size in bytes with the NUL; 0: the name does not fit or has the wrong form. */
size_t sj_registry_name_method(sj_registry *registry, uint64_t process, const char *method,
                               uint64_t code, char *name, size_t capacity);

/* Adds the methods that a runtime of a process named as functions of a module called `path`. Sends
 * Module and Mapping frames. On entry, wanted[i] says whether the module of the method's code is
 * recorded; on return, whether the method is. SJ_ECORRUPT, SJ_ELIMIT, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_add_methods(sj_registry *registry, uint64_t process,
                                                const char *path, sj_slice names, uint32_t count,
                                                uint64_t now_ticks, uint32_t *first_function,
                                                uint8_t *wanted);

/* The answer to an agent about a container. */
typedef struct sj_container_reply {
    bool has_lines;
    uint32_t first_function; /* function id of token 1 */
    uint32_t count;          /* number of tokens */
    uint8_t *wanted;         /* (count + 7) / 8 bytes, one bit per token; the caller frees them */
    const sj_link_method_values *values; /* borrowed; valid as long as the registry */
    uint32_t value_count;
} sj_container_reply;

/* Adds the methods of a container that a runtime of a process has loaded as functions of a module,
 * once per session and module id. Reads the file. Sends Module and Mapping frames.
 *
 * SJ_EUNSUPPORTED: nothing in it is wanted. SJ_ENOTFOUND: its file cannot be read. SJ_ELIMIT,
 * SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_container(sj_registry *registry, uint64_t process,
                                                  const sj_link_container *container,
                                                  const char *path, uint64_t now_ticks,
                                                  sj_container_reply *reply);

/* The answer about a Java class. */
typedef struct sj_class_reply {
    uint32_t first_function; /* function id of the first method */
    uint32_t count;          /* number of methods */
    uint32_t rewritten;      /* number of methods with probes */
    uint32_t selection;      /* sj_class_selection */
    /* the rewritten class; NULL: no method can have probes; the caller frees it */
    uint8_t *bytes;
    size_t size;
} sj_class_reply;

/* Names of a class, in the JVM's internal form. `lineage` holds NUL-terminated names. */
typedef struct sj_class_texts {
    sj_slice name;
    sj_slice loader;
    sj_slice lineage;
    sj_slice host; /* host of a hidden class */
} sj_class_texts;

/* Adds the methods of a Java class that a process is about to define as functions of a module, once
 * per session, loader and bytes. Sends Module and Mapping frames. Adds probes to the wanted
 * methods. Uses the loader in `texts`, and the host of a hidden class, which selects and names that
 * class.
 *
 * SJ_EUNSUPPORTED: nothing in it is wanted, it has probes already, or it is not a class file.
 * SJ_ELIMIT, SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_class(sj_registry *registry, uint64_t process,
                                              const sj_link_class *class,
                                              const sj_class_texts *texts, sj_slice bytes,
                                              uint64_t now_ticks, sj_class_reply *reply);

/* True if a class that a process has loaded must be transformed again: its probes differ from those
 * that the selection asks for. */
bool sj_registry_choose_class(sj_registry *registry, uint64_t process,
                              const sj_link_loaded_class *loaded, const sj_class_texts *texts);

/* sj_registry_leave_out excludes Java methods from the recording of a process for their cost
 * (`is_out`), or includes them again. This takes effect when their classes are next transformed. It
 * moves functions that are not Java methods to the front, in their order, and returns their number.
 *
 * sj_registry_leave_out_none includes all methods again. Muted methods stay muted until
 * sj_registry_unmute_found. Any thread. */
size_t sj_registry_leave_out(sj_registry *registry, uint64_t process, uint32_t *functions,
                             size_t count, bool is_out);
void sj_registry_leave_out_none(sj_registry *registry);

/* Methods that a process leaves out for their cost. */
typedef struct sj_left_out_choice {
    uint64_t process;
    uint32_t *methods;
    size_t count;
    bool (*is_rare)(void *context, uint32_t function); /* True if the method's probes may stay */
    void *context;
} sj_left_out_choice;

/* Marks the methods that are muted and keep their probes. Methods of hidden classes always keep
 * them. A method of another class keeps them if all its class's methods in `choice` are rare and no
 * values are recorded. Moves the marked methods to the front and returns how many there are. Any
 * thread. */
size_t sj_registry_mute(sj_registry *registry, const sj_left_out_choice *choice);

/* sj_registry_find_muted moves the muted ones of the methods to the front and returns how many
 * there are. sj_registry_unmute_found also notes that they are recorded again.
 * sj_registry_find_all_muted lists the muted methods of a process, at most `capacity`. Any
 * thread. */
size_t sj_registry_find_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                              size_t count);
size_t sj_registry_unmute_found(sj_registry *registry, uint64_t process, uint32_t *methods,
                                size_t count);
size_t sj_registry_find_all_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                                  size_t capacity);

/* Plans generated code of the session's functions and reports the functions that cannot be hooked.
 * `file` has the content of an sj_link_code from the process. reply->first_function has no meaning.
 * SJ_ECORRUPT, SJ_EUNSUPPORTED, SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_registry_plan_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count,
                                                   sj_plan_reply *reply);

/* Notes which instructions of methods ran in a process, given as words of an sj_link_lines. After
 * the last words, reports their lines. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_lines(sj_registry *registry, const uint32_t *words,
                                              uint32_t count, bool is_last, uint64_t now_ticks);

/* Reports why it is unknown which lines run in a process. Errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_lines(sj_registry *registry, uint64_t process,
                                                    sj_no_lines reason, uint64_t now_ticks);

/* Reports why the methods of a process's Mono runtime are not recorded (monitor "mono").
 * SJ_ECORRUPT, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_methods(sj_registry *registry, uint64_t process,
                                                      const sj_link_no_methods *no_methods,
                                                      uint64_t now_ticks);

/* Reports the state of a process's Java classes (monitor "jvm"). SJ_ECORRUPT, errors of
 * sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_registry_report_jvm(sj_registry *registry, uint64_t process,
                                               const sj_link_jvm_state *state, uint64_t now_ticks);

/* Reports what a process said about a thread that does not answer (monitor "stall"). `json` is a
 * JSON object. SJ_ECORRUPT: it is not an object. Errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_registry_report_stall(sj_registry *registry, uint64_t process,
                                                 sj_slice json, uint64_t now_ticks);

/* A method, and the class of an object on which it was called for the first time. */
typedef struct sj_receiver_pair {
    uint64_t isa;      /* first word of the object */
    uint32_t function; /* id of the method's function */
    /* Out: the function of the method for that class. It is `function` itself if the class defines
     * the method or is unknown. */
    uint32_t result;
} sj_receiver_pair;

/* Adds functions for the pairs and sends their frames. SJ_ENOMEM, SJ_ELIMIT, errors of the frame
 * writer. */
SJ_MUST_CHECK sj_status sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                                  sj_receiver_pair *pairs, size_t count,
                                                  uint64_t now_ticks);

/* Reports that generated code is not hooked. `skip`: the reason, an sj_skip. SJ_ECORRUPT,
 * SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_skip_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count, uint32_t skip);

/* A method, as -[Class selector], and its new code in the process. */
typedef struct sj_replaced_code {
    uint64_t code;
    const char *name;
} sj_replaced_code;

/* Notes which code a program gave to its methods, all at one moment. If only one method has the
 * code of a function, calls of the function get that method's name, as a function of their own.
 * Code that several methods share keeps its name. SJ_ENOMEM, SJ_ELIMIT, errors of the frame writer.
 * */
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

/* sj_registry_renamed_count returns the number of renamed functions of all processes; any thread,
 * without a lock. sj_registry_list_renamed copies at most `capacity` of them, from index `first`
 * on, in the order of their times. It returns how many it copied. */
size_t sj_registry_renamed_count(const sj_registry *registry);
size_t sj_registry_list_renamed(sj_registry *registry, size_t first, sj_renamed_function *list,
                                size_t capacity);

/* Reports functions (ids, in any order) of generated code that have no hooks in a process.
 * SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_generated(sj_registry *registry, uint64_t process,
                                                     const sj_link_failure *failures, size_t count);

/* Notes what the agent did with a plan. Sends Unhooked if the agent refused some functions. */
SJ_MUST_CHECK sj_status sj_registry_applied(sj_registry *registry, uint64_t process,
                                            const sj_link_applied *applied,
                                            const sj_link_failure *failures, size_t failure_count);

/* Sends the end of a mapping. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_registry_unloaded(sj_registry *registry, uint64_t process, uint64_t bias,
                                             uint64_t now_ticks);

void sj_registry_get_counters(sj_registry *registry, sj_registry_counters *counters);

#endif
