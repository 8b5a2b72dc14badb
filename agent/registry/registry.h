/* The registry: processes and modules of the session, with their numbers, and the frames that
 * report them to the collector before any block that needs them. Any thread. */
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
    sj_function_rules *rules;      /* gets the names of functions; borrowed; NULL: none */
    const char *runtime_directory; /* plan files are put there; borrowed */
    const char *cache_directory;   /* NULL: plans are not cached */
    const sj_journal *journal;     /* borrowed; NULL: none */
    sj_class_table *classes;       /* read where the selection needs it; borrowed; NULL: none */
    /* Where an emulator looks for modules first; NULL or "": nowhere. */
    const char *sysroot;
    uint32_t plan_threads; /* see sj_planner_options */
    sj_plan_ahead *ahead;  /* of the program, into the same cache; borrowed; NULL: none */
    /* How long a process waits for all its plans together; those that take longer are then made on
     * other threads; 0: as long as they take. The agent waits SJ_LINK_TIMEOUT_MS for any answer. */
    uint32_t plan_wait_ms;
    bool counts_calls; /* nothing in the programs records the methods of their runtimes */
} sj_registry_options;

enum { SJ_REGISTRY_SKIPS = 32 }; /* more than the reasons of sj_skip */

typedef struct sj_registry_counters {
    uint64_t processes;
    uint64_t forked; /* of them */
    uint64_t modules;
    uint64_t functions;                /* in the tables of planned modules */
    uint64_t hooked;                   /* in the first process that used each module */
    uint64_t failed;                   /* planned, refused by the agent */
    uint64_t filtered;                 /* left out because the user asked so */
    uint64_t skips[SJ_REGISTRY_SKIPS]; /* by sj_skip: why functions were left out */
    uint64_t text_bytes;               /* of code, in modules that were planned */
    uint64_t unknown_text_bytes;       /* of it in no known function */
    uint64_t poor_modules;             /* of whose code a tenth or more is in no known function */
    char poor_module[256];             /* the first of them: its path */
    uint64_t poor_module_percent;      /* of its code that is in no known function */
    uint64_t hook_ns;                  /* CPU time that agents spent on modules */
    uint64_t plan_ns;
    uint64_t late_plans;         /* modules that programs ran on without: planned later, or never */
    uint64_t late_unhooked;      /* of them: got no hooks before the end */
    char late_module[256];       /* the first of these, else the first of all: its path */
    uint64_t late_missed_ns;     /* for how long that one's calls are missing */
    uint64_t overwritten;        /* functions whose hooks programs have overwritten */
    char first_overwritten[512]; /* the first of them: FILE!NAME */
    uint64_t plan_failures;      /* wanted modules that could not be planned */
    char plan_failure[SJ_ERROR_TEXT_BYTES]; /* the first of them, as text */
    char unrecorded_runtime[16];            /* the first whose methods are not recorded; "": none */
    uint32_t jvm_retransformed;             /* loaded classes of JVMs that were attached to */
    uint32_t jvm_batches;
    uint64_t jvm_virtual_calls; /* in virtual threads of the JVM that told last: counted only */
    uint32_t jvm_hidden_before; /* hidden classes without probes, in the JVM that was asked last */
    uint64_t jvm_total_ns;
    uint64_t jvm_longest_ns;     /* of a batch */
    uint64_t jvm_transformed_ns; /* all that JVMs spent on that, at any moment */
} sj_registry_counters;

SJ_MUST_CHECK sj_status sj_registry_new(const sj_registry_options *options, sj_registry **registry);
void sj_registry_free(sj_registry *registry);

/* sj_registry_add_process numbers a process that said HELLO and sends its Process frame. A pid that
 * is already known and alive has replaced its program (exec): its old entry ends. */
SJ_MUST_CHECK sj_status sj_registry_add_process(sj_registry *registry, pid_t pid, pid_t parent_pid,
                                                sj_link_occasion occasion, uint64_t now_ticks,
                                                uint64_t *number);

/* sj_registry_note_arena writes a process into the journal, with the name of its arena. */
void sj_registry_note_arena(sj_registry *registry, uint64_t number, const char *arena_name);

/* sj_registry_adopt_process takes a process of a killed recorder's journal over. The numbers must
 * come in order. Thread-safe. SJ_ENOMEM, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_adopt_process(sj_registry *registry,
                                                  const sj_journal_process *process);

/* sj_registry_find_process gives the number of the living process `pid`. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_registry_find_process(sj_registry *registry, pid_t pid,
                                                 uint64_t *number);

/* sj_registry_is_forked returns whether a process began as a fork of another one. */
bool sj_registry_is_forked(sj_registry *registry, uint64_t number);

/* sj_registry_list_living writes the pids of processes that have not ended, at most `capacity`;
 * returns how many. */
size_t sj_registry_list_living(sj_registry *registry, pid_t *pids, size_t capacity);

/* sj_registry_index_functions collects the planned functions of all modules of a process. Release
 * with sj_function_index_deinit. SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_registry_index_functions(sj_registry *registry, uint64_t process,
                                                    sj_function_index *index);

/* How a process ended, as far as it is known. */
typedef struct sj_process_end {
    uint64_t ended_ticks;
    bool has_status;
    int wait_status; /* as wait(2) gives it */
    uint32_t disarm_reason;
} sj_process_end;

/* sj_registry_end_process sends the Process frame of the end; later calls only add what is new. */
SJ_MUST_CHECK sj_status sj_registry_end_process(sj_registry *registry, uint64_t number,
                                                const sj_process_end *end);

/* A module of a process that an agent asks about. Pointers are borrowed for the call. */
typedef struct sj_plan_request {
    uint64_t process;
    const sj_link_module *module;
    const char *path; /* of the module's file, as the process has it */
    uint64_t now_ticks;
    uint64_t asked_ns; /* CLOCK_MONOTONIC */
} sj_plan_request;

typedef struct sj_plan_answer {
    uint32_t first_function;
    char plan_path[PATH_MAX];
    sj_plan plan; /* of generated code, in the place of a file: the receiver's; else zeroed */
} sj_plan_answer;

/* sj_registry_plan_module answers a MODULE: plans it (once per session and build-id) and sends
 * Module and Mapping frames. SJ_OK: `*answer` is filled. SJ_EAGAIN: its plan is
 * being made, and the process may still wait: ask again with the same request. SJ_EUNSUPPORTED: it
 * is excluded by the selection, cannot be planned, or its plan is late. Blocking: up to seconds for
 * large ones without a cache. */
SJ_MUST_CHECK sj_status sj_registry_plan_module(sj_registry *registry,
                                                const sj_plan_request *request,
                                                sj_plan_answer *answer);

/* What is to become of the functions of a session, by id. */
typedef enum sj_function_state {
    SJ_FUNCTION_FIXED = 0, /* cannot be hooked in place: stays as it is */
    SJ_FUNCTION_WANTED = 1,
    SJ_FUNCTION_UNWANTED = 2,
    /* Of a container: its runtime records what is not hooked in place, or its code is not there. */
    SJ_FUNCTION_MANAGED = 3,
    SJ_FUNCTION_MANAGED_UNWANTED = 4
} sj_function_state;

typedef struct sj_function_states {
    uint8_t *states; /* [count] sj_function_state; ids from `count` on are of later modules */
    uint32_t count;
    bool other_modules;     /* modules that were excluded may be wanted now */
    bool asks_agents;       /* agents look for news, also those whose hooks seem complete */
    uint8_t *renewed;       /* [count] sj_renewal, as bits; of earlier selections, too, until
                               sj_registry_settle_renewed */
    uint32_t renewed_count; /* 0: none */
} sj_function_states;

void sj_function_states_deinit(sj_function_states *states);

/* sj_registry_select puts another selection, and the rules that get the names, in the place of
 * those before (borrowed, like them): plans that are asked for from now on obey it, and the
 * collector is notified. `states` says what that means for functions that are planned already; the
 * caller releases it, also after a failure. SJ_ENOMEM, SJ_EIO, SJ_ECORRUPT: nothing is selected
 * anew, or only some modules are. */
SJ_MUST_CHECK sj_status sj_registry_select(sj_registry *registry, const sj_selection *selection,
                                           sj_function_rules *rules, sj_function_states *states);

/* sj_registry_has_late returns true if a plan has been made that programs ran on without, and whose
 * hooks they do not have yet. False also while another plan is waited for. Does not block. */
bool sj_registry_has_late(sj_registry *registry);

/* sj_registry_begin_late sets `states` for a transition that adds the hooks of such plans and
 * leaves everything else as it is. Release it with sj_function_states_deinit. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_begin_late(sj_registry *registry, sj_function_states *states);

/* sj_registry_settle_late ends such a transition. If all living processes have followed, it reports
 * for how long calls are missing; else the next one tries again, some times. */
void sj_registry_settle_late(sj_registry *registry, bool have_followed);

/* sj_registry_end_late reports the modules that got no hooks to the end. Once, at the end. */
void sj_registry_end_late(sj_registry *registry);

/* sj_registry_settle_renewed: all processes have followed the last selection. Else the next one has
 * its renewed functions as well. */
void sj_registry_settle_renewed(sj_registry *registry);

/* sj_registry_report_missed reports to the collector that functions (ids, ascending) which are
 * wanted could not be hooked in a process, as far as it has their modules; `*reported` is how many
 * that were. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_missed(sj_registry *registry, uint64_t process,
                                                  const uint32_t *functions, size_t count,
                                                  size_t *reported);

/* sj_registry_report_overwritten reports the functions whose hooks a process has overwritten, and
 * counts them. An empty list is not reported. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_overwritten(sj_registry *registry, uint64_t process,
                                                       const sj_overwritten *found);

/* sj_registry_begin_review says which functions (bytes by id, borrowed until
 * sj_registry_end_review) have hooks in a process that is going to ask for more. One process at a
 * time. */
void sj_registry_begin_review(sj_registry *registry, uint64_t process, const uint8_t *prepared,
                              uint32_t count);
void sj_registry_end_review(sj_registry *registry);

/* sj_registry_review_module answers a REVIEW like sj_registry_plan_module, with the functions that
 * are wanted and have no hooks yet. SJ_EUNSUPPORTED: there is none, or no review was begun. */
SJ_MUST_CHECK sj_status sj_registry_review_module(sj_registry *registry,
                                                  const sj_plan_request *request,
                                                  sj_plan_answer *answer);

/* sj_registry_plan_imports answers an IMPORTS like sj_registry_plan_module; in a review, with those
 * that have no hooks yet. SJ_EUNSUPPORTED: there is none, the module's plan has them, or calls of
 * libraries are not wanted. */
SJ_MUST_CHECK sj_status sj_registry_plan_imports(sj_registry *registry,
                                                 const sj_plan_request *request,
                                                 sj_plan_answer *answer);

/* sj_registry_present_runtimes returns SJ_LINK_RUNTIME bits of the beginning with those that the
 * selection of this moment asks for: calls of libraries, and whether runtimes that show their
 * classes are asked for the system's, and for what classes descend from. Any thread. */
uint32_t sj_registry_present_runtimes(sj_registry *registry, uint32_t runtimes);

/* sj_registry_learn_class takes what a runtime of a process says of a class: its name and those of
 * its ancestors, nearest first, NUL-terminated. For classes that no file describes. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_learn_class(sj_registry *registry, uint64_t process,
                                                sj_slice lineage);

/* sj_registry_name_method writes the name of a method with the category that defines its code in
 * the process, if one does. Returns its bytes with the NUL; 0 when it does not fit or is none. */
size_t sj_registry_name_method(sj_registry *registry, uint64_t process, const char *method,
                               uint64_t code, char *name, size_t capacity);

/* sj_registry_add_methods makes functions of the methods that a runtime of a process named, as a
 * module called `path`, and sends Module and Mapping frames. wanted[i] returns whether the module
 * of the method's code is recorded, and afterwards whether the method is. SJ_ECORRUPT, SJ_ELIMIT,
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_registry_add_methods(sj_registry *registry, uint64_t process,
                                                const char *path, sj_slice names, uint32_t count,
                                                uint64_t now_ticks, uint32_t *first_function,
                                                uint8_t *wanted);

/* The answer to the agent about a container. */
typedef struct sj_container_answer {
    bool has_lines;
    uint32_t first_function; /* of token 1 */
    uint32_t count;          /* of tokens */
    uint8_t *wanted;         /* (count + 7) / 8 bytes, a bit each; the caller frees them */
    const sj_link_method_values *values; /* borrowed: lasts as long as the registry */
    uint32_t value_count;
} sj_container_answer;

/* sj_registry_add_container makes functions of the methods of a container that a runtime of a
 * process has loaded, as a module, once per session and module id, and sends Module and Mapping
 * frames. SJ_EUNSUPPORTED: nothing of it is wanted; SJ_ENOTFOUND: its file cannot be read.
 * SJ_ELIMIT, SJ_ENOMEM, errors of the writer. Reads the file. */
SJ_MUST_CHECK sj_status sj_registry_add_container(sj_registry *registry, uint64_t process,
                                                  const sj_link_container *container,
                                                  const char *path, uint64_t now_ticks,
                                                  sj_container_answer *answer);

/* What is to become of a Java class. */
typedef struct sj_class_answer {
    uint32_t first_function; /* of the first method */
    uint32_t count;          /* of methods */
    uint32_t rewritten;      /* methods with probes */
    uint32_t selection;      /* sj_class_selection */
    uint8_t *bytes;          /* the rewritten class; NULL: no method can have probes; the caller
                                frees it */
    size_t size;
} sj_class_answer;

/* The texts of a class: in internal form; `lineage` is terminated names. */
typedef struct sj_class_texts {
    sj_slice name;
    sj_slice loader;
    sj_slice lineage;
    sj_slice host; /* of a hidden class */
} sj_class_texts;

/* sj_registry_add_class makes functions of the methods of a Java class that a process is about to
 * define, as a module, once per session, loader and bytes, sends Module and Mapping frames, and
 * puts probes into the methods that are wanted. Of the texts it takes the loader and, of a hidden
 * class, the host, by which it is chosen and named. SJ_EUNSUPPORTED: nothing of it is wanted, it
 * has probes already, or it is no class file. SJ_ELIMIT, SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_class(sj_registry *registry, uint64_t process,
                                              const sj_link_class *class,
                                              const sj_class_texts *texts, sj_slice bytes,
                                              uint64_t now_ticks, sj_class_answer *answer);

/* sj_registry_choose_class returns whether a class that a process has loaded has other probes than
 * the selection asks for: it is to be transformed again. */
bool sj_registry_choose_class(sj_registry *registry, uint64_t process,
                              const sj_link_loaded_class *loaded, const sj_class_texts *texts);

/* sj_registry_leave_out has Java methods among the functions recorded no more in a process for
 * their cost (`is_out`), or again, when their classes are transformed next. It moves the other
 * functions to the front, in their order, the methods behind them, and returns how many others
 * there are. Any thread. sj_registry_leave_out_none has all recorded again. Those that are muted
 * are so until sj_registry_take_muted. */
size_t sj_registry_leave_out(sj_registry *registry, uint64_t process, uint32_t *functions,
                             size_t count, bool is_out);
void sj_registry_leave_out_none(sj_registry *registry);

/* Methods that a process leaves out for their cost. */
typedef struct sj_left_out_choice {
    uint64_t process;
    uint32_t *methods;
    size_t count;
    bool (*is_rare)(void *context, uint32_t function); /* its probes may stay */
    void *context;
} sj_left_out_choice;

/* sj_registry_mute notes which of these methods keep their probes, to be muted: those of classes
 * all of whose methods here are rare, unless values are recorded, and all of hidden classes. It
 * moves them to the front and returns how many. Any thread. */
size_t sj_registry_mute(sj_registry *registry, const sj_left_out_choice *choice);

/* sj_registry_find_muted moves the muted ones among the methods to the front and returns how many;
 * sj_registry_take_muted does the same and notes that they are recorded again.
 * sj_registry_find_all_muted gives those of a process, as many as there is room for. Any thread. */
size_t sj_registry_find_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                              size_t count);
size_t sj_registry_take_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                              size_t count);
size_t sj_registry_find_all_muted(sj_registry *registry, uint64_t process, uint32_t *methods,
                                  size_t capacity);

/* sj_registry_plan_generated plans code of functions of the session that a process has generated,
 * as an sj_link_code has them (`file`), and reports those that cannot be hooked.
 * answer->first_function stands for nothing. SJ_ECORRUPT, SJ_EUNSUPPORTED, SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_registry_plan_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count,
                                                   sj_plan_answer *answer);

/* sj_registry_add_lines takes which instructions of methods ran in a process, as words of an
 * sj_link_lines, and reports their lines. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_lines(sj_registry *registry, const uint32_t *words,
                                              uint32_t count, bool is_last, uint64_t now_ticks);

/* sj_registry_report_no_lines reports why it is not known which lines run in a process. Errors of
 * the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_lines(sj_registry *registry, uint64_t process,
                                                    sj_no_lines reason, uint64_t now_ticks);

/* sj_registry_report_no_methods reports why the methods of a process's Mono are not recorded, as a
 * report of the monitor "mono". SJ_ECORRUPT, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_no_methods(sj_registry *registry, uint64_t process,
                                                      const sj_link_no_methods *no_methods,
                                                      uint64_t now_ticks);

/* sj_registry_report_jvm sends what became of a process's Java classes, as a report of the monitor
 * "jvm". Errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_registry_report_jvm(sj_registry *registry, uint64_t process,
                                               const sj_link_jvm_state *state, uint64_t now_ticks);

/* sj_registry_report_stall sends what a process said of a thread that does not answer, a JSON
 * object, as a report of the monitor "stall". Errors of sj_frame_writer_report; SJ_ECORRUPT it is
 * no object. */
SJ_MUST_CHECK sj_status sj_registry_report_stall(sj_registry *registry, uint64_t process,
                                                 sj_slice json, uint64_t now_ticks);

/* A method that was called on an object of some class, for the first time. */
typedef struct sj_receiver_pair {
    uint64_t isa;      /* first word of the object */
    uint32_t function; /* the method's */
    uint32_t result;   /* out: the function of the method for that class, or `function` itself when
                        * the class defines it or is not known */
} sj_receiver_pair;

/* sj_registry_add_receivers makes functions of the pairs, and sends their frames. SJ_ENOMEM,
 * SJ_ELIMIT, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_receivers(sj_registry *registry, uint64_t process,
                                                  sj_receiver_pair *pairs, size_t count,
                                                  uint64_t now_ticks);

/* sj_registry_skip_generated reports that none of such code is hooked, and why: an sj_skip. Errors
 * as above. */
SJ_MUST_CHECK sj_status sj_registry_skip_generated(sj_registry *registry, uint64_t process,
                                                   sj_slice file, uint32_t count, uint32_t skip);

/* A method, as -[Class selector], and the code in the process that it has from now on. */
typedef struct sj_put_in {
    uint64_t code;
    const char *name;
} sj_put_in;

/* sj_registry_put_in takes what a program put into its classes, all at one moment. A function whose
 * code is that of one method alone is called by that method's name, as a function of its own; code
 * that several methods share keeps its name. SJ_ENOMEM, SJ_ELIMIT, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_put_in(sj_registry *registry, uint64_t process,
                                           const sj_put_in *changes, size_t count,
                                           uint64_t now_ticks);

/* A function of a process whose calls are of another function, `named`, from `ticks` on. */
typedef struct sj_renamed_function {
    uint64_t process;
    uint64_t ticks;
    uint32_t function;
    uint32_t named;
} sj_renamed_function;

/* sj_registry_renamed_count returns how many of these there are in all processes. Any thread, no
 * lock. sj_registry_list_renamed copies them from place `first` on, at most `capacity`, in the
 * order of their times; returns how many. */
size_t sj_registry_renamed_count(const sj_registry *registry);
size_t sj_registry_list_renamed(sj_registry *registry, size_t first, sj_renamed_function *list,
                                size_t capacity);

/* sj_registry_report_generated reports functions (ids, in any order) of generated code that have no
 * hooks in a process. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_generated(sj_registry *registry, uint64_t process,
                                                     const sj_link_failure *failures, size_t count);

/* sj_registry_applied notes what the agent did with a plan; sends Unhooked when it refused some. */
SJ_MUST_CHECK sj_status sj_registry_applied(sj_registry *registry, uint64_t process,
                                            const sj_link_applied *applied,
                                            const sj_link_failure *failures, size_t failure_count);

/* sj_registry_unloaded sends the end of a mapping. SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_registry_unloaded(sj_registry *registry, uint64_t process, uint64_t bias,
                                             uint64_t now_ticks);

void sj_registry_get_counters(sj_registry *registry, sj_registry_counters *counters);

#endif
