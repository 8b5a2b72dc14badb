/* Design notes
 *
 * The whole file of a region is allocated when it is created. Otherwise, a program that writes to a
 * hole would be killed if the file system is full. The program can write to its region, so all data
 * read from it is copied or checked. */
#include "agent/zombies/zombies.h"

#include "agent/host/clock.h"
#include "agent/zombies/allocator.h"
#include "agent/zombies/guard_sites.h"
#include "agent/zombies/heap_entries.h"
#include "agent/zombies/pressure.h"
#include "agent/zombies/zombie_budget.h"
#include "agent/zombies/zombie_capacity.h"
#include "agent/zombies/zombie_report.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The budget is checked after this time and this CPU time of the program have passed. */
#define CHECK_NS UINT64_C(200000000)
#define CHECK_CPU_NS UINT64_C(20000000)

static const char monitor[] = "zombies";

/* Times and costs at one moment. */
typedef struct cost_readings {
    uint64_t at_ns;
    uint64_t ticks;
    uint64_t cpu_ns;
    uint64_t heap_ticks;
    uint64_t history_ticks;
    uint64_t delayed_ticks;
} cost_readings;

typedef struct watched_process {
    struct watched_process *next;
    uint64_t number;
    pid_t pid;                /* 0 if the process was adopted from a killed recorder. */
    sj_zombie_region *region; /* NULL if the process is not monitored. */
    bool was_watched;         /* True if it was ever monitored for freed memory: gets a summary. */
    sj_unwinder *walker;      /* NULL until it is needed. */
    uint32_t walker_modules;  /* Number of modules that the walker knows. */
    uint32_t guarded_modules; /* Number of modules that were searched for sites. */
    cost_readings last;       /* At the latest check of the budget; zeros before. */
    sj_zombie_budget budget;
    sj_zombie_limits limits;
    char path[PATH_MAX];
} watched_process;

/* The plans for an allocator. They are reused for other processes with the same allocator. */
typedef struct sj_planned_allocator {
    struct sj_planned_allocator *next;
    sj_allocator allocator;
    uint32_t why_not; /* An sj_zombie_refusal. */
    sj_heap_entry_plans plans;
} sj_planned_allocator;

struct sj_zombies {
    sj_zombies_options options;
    pthread_mutex_t mutex; /* Guards all members below. */
    watched_process *processes;
    sj_method_names *names;
    sj_allocator_files *files;
    sj_planned_allocator *planned; /* The latest one is first. */
    uint64_t ended_ticks;          /* Cost of monitoring in processes that have ended, in ticks. */
};

sj_status sj_zombies_new(const sj_zombies_options *options, sj_zombies **zombies)
{
    sj_zombies *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return SJ_ENOMEM;
    }
    if (sj_method_names_new(&created->names) != SJ_OK) {
        free(created);
        return SJ_ENOMEM;
    }
    created->options = *options;
    pthread_mutex_init(&created->mutex, NULL);
    *zombies = created;
    return SJ_OK;
}

/* Sends a report and frees `json`. Does nothing if `json` is NULL. If the spool has no space, it
 * counts the report as lost. */
static void send_json(const sj_zombies *zombies, uint64_t process, const char *kind, uint64_t ticks,
                      char *json)
{
    if (json != NULL) {
        const sj_report report = {.ticks = ticks,
                                  .process = process,
                                  .monitor = monitor,
                                  .kind = kind,
                                  .json = json,
                                  .json_bytes = strlen(json)};
        (void)!sj_frame_writer_report(zombies->options.writer, &report);
    }
    free(json);
}

static bool is_same(const sj_allocator *left, const sj_allocator *right)
{
    return strcmp(left->library, right->library) == 0 &&
           strcmp(left->allocator, right->allocator) == 0 &&
           strcmp(left->operators, right->operators) == 0;
}

static sj_status plan_module(const sj_zombies *zombies, const sj_heap_entry_module *module,
                             const char *stem, sj_heap_entry_plans *plans)
{
    sj_error error = {0};
    return module->path[0] == '\0'
               ? SJ_OK
               : sj_heap_entry_plan(module, zombies->options.cache_directory, stem, plans, &error);
}

/* Plans the modules of an allocator. Returns SJ_ZOMBIE_MONITORED, or why nothing can be patched.
 * The plan of the C++ library is optional: without it, blocks of operator new are treated like
 * malloc's. */
static uint32_t plan_parts(const sj_zombies *zombies, const sj_allocator *allocator,
                           const char *stem, sj_heap_entry_plans *plans)
{
    const bool is_other = allocator->allocator[0] != '\0';
    const sj_heap_entry_module main = {.path = is_other ? allocator->allocator : allocator->library,
                                       .part = SJ_HEAP_ALLOCATOR,
                                       .is_c_library = !is_other,
                                       .is_program = allocator->is_program};
    const sj_heap_entry_module library = {.path = is_other ? allocator->library : "",
                                          .part = SJ_HEAP_LIBRARY};
    const sj_heap_entry_module operators = {.path = allocator->operators,
                                            .part = SJ_HEAP_OPERATORS};
    if (allocator->why_not != SJ_ZOMBIE_MONITORED) {
        return allocator->why_not;
    }
    if (allocator->library[0] == '\0' || plan_module(zombies, &main, stem, plans) != SJ_OK ||
        plan_module(zombies, &library, stem, plans) != SJ_OK) {
        return SJ_ZOMBIE_NO_PLAN;
    }
    (void)!plan_module(zombies, &operators, stem, plans);
    return SJ_ZOMBIE_MONITORED;
}

/* Returns the plans for the allocator of a process, or NULL if out of memory. */
static const sj_planned_allocator *plan_allocator(sj_zombies *zombies, pid_t pid)
{
    char stem[PATH_MAX];
    sj_planned_allocator *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return NULL;
    }
    sj_allocator_find(&zombies->files, pid, &created->allocator);
    for (const sj_planned_allocator *at = zombies->planned; at != NULL; at = at->next) {
        if (is_same(&at->allocator, &created->allocator)) {
            free(created);
            return at;
        }
    }
    snprintf(stem, sizeof(stem), "%s/zombies-%d", zombies->options.runtime_directory, (int)pid);
    created->why_not = strlen(stem) < 480
                           ? plan_parts(zombies, &created->allocator, stem, &created->plans)
                           : SJ_ZOMBIE_NO_PLAN;
    created->next = zombies->planned;
    zombies->planned = created;
    return created;
}

static void free_planned(sj_planned_allocator *planned)
{
    while (planned != NULL) {
        sj_planned_allocator *freed = planned;
        planned = freed->next;
        for (int i = 0; i < SJ_HEAP_PARTS * SJ_HEAP_HALVES; i++) {
            const char *path = freed->plans.plans[i / SJ_HEAP_HALVES].paths[i % SJ_HEAP_HALVES];
            if (path[0] != '\0') {
                unlink(path);
            }
        }
        free(freed);
    }
}

/* Creates the region's file and maps it. Returns NULL if that fails. */
static sj_zombie_region *make_region(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    void *mapped = MAP_FAILED;
    if (file < 0) {
        return NULL;
    }
    if (posix_fallocate(file, 0, sizeof(sj_zombie_region)) == 0) {
        mapped = mmap(NULL, sizeof(sj_zombie_region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    if (mapped == MAP_FAILED) {
        unlink(path);
        return NULL;
    }
    return mapped;
}

/* Writes the plans of the process's allocator to the region, if the settings need them. Call it
 * before the region's settings ask for heap monitoring. */
static void fill_plan(sj_zombies *zombies, pid_t pid, sj_zombie_region *region)
{
    const sj_zombie_settings *settings = &zombies->options.settings;
    if ((settings->one_in == 0 && settings->counts == 0) || pid == 0 ||
        region->plans[SJ_HEAP_ALLOCATOR].anchor_name[0] != '\0') {
        return;
    }
    const sj_planned_allocator *planned = plan_allocator(zombies, pid);
    region->why_not = planned != NULL ? planned->why_not : (uint32_t)SJ_ZOMBIE_NO_PLAN;
    if (region->why_not == SJ_ZOMBIE_MONITORED) {
        memcpy(region->heap_entries, planned->plans.heap_entries, sizeof(region->heap_entries));
        memcpy(region->parts, planned->plans.parts, sizeof(region->parts));
        memcpy(region->is_forwarding, planned->plans.is_forwarding, sizeof(region->is_forwarding));
        memcpy(region->plans, planned->plans.plans, sizeof(region->plans));
    }
}

static void fill_region(sj_zombies *zombies, pid_t pid, sj_zombie_region *region)
{
    region->version = SJ_ZOMBIES_VERSION;
    fill_plan(zombies, pid, region);
    region->settings = zombies->options.settings;
    sj_zombie_capacity_choose(&region->settings, sj_pressure_free_bytes("", pid));
    sj_guard_sites_add_mapped(region, region->settings.guard.callers, pid);
    atomic_store(&region->refusal, SJ_ZOMBIE_NOT_STARTED);
    atomic_store(&region->objects_refusal, SJ_ZOMBIE_NOT_STARTED);
    atomic_store(&region->counting_refusal, SJ_ZOMBIE_NOT_STARTED);
    region->magic = SJ_ZOMBIES_MAGIC;
}

/* Maps an existing region. Returns NULL if it is missing or damaged. */
static sj_zombie_region *map_region(const char *path)
{
    struct stat status;
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    void *mapped = MAP_FAILED;
    if (file < 0) {
        return NULL;
    }
    if (fstat(file, &status) == 0 && status.st_size == (off_t)sizeof(sj_zombie_region)) {
        mapped = mmap(NULL, sizeof(sj_zombie_region), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    close(file);
    sj_zombie_region *region = mapped != MAP_FAILED ? mapped : NULL;
    if (region != NULL &&
        (region->magic != SJ_ZOMBIES_MAGIC || region->version != SJ_ZOMBIES_VERSION)) {
        munmap(mapped, sizeof(sj_zombie_region));
        return NULL;
    }
    return region;
}

static watched_process *new_process(sj_zombies *zombies, uint64_t number, pid_t pid,
                                    const char *arena_name)
{
    watched_process *created = calloc(1, sizeof(*created));
    const char *end = strrchr(arena_name, '.');
    if (created == NULL) {
        return NULL;
    }
    created->number = number;
    created->pid = pid;
    const int stem = end != NULL ? (int)(end - arena_name) : (int)strlen(arena_name);
    snprintf(created->path, sizeof(created->path), "%s/%.*s.zombies",
             zombies->options.runtime_directory, stem, arena_name);
    created->next = zombies->processes;
    zombies->processes = created;
    return created;
}

/* True if the settings ask for monitoring of blocks or objects. */
static bool is_watching(const sj_zombie_settings *settings)
{
    return settings->one_in != 0 || settings->objects.is_on != 0;
}

/* True if the settings ask for monitoring or counting. */
static bool needs_region(const sj_zombie_settings *settings)
{
    return is_watching(settings) || settings->counts != 0;
}

/* Creates the region of a process that has none, if the settings need one. */
static void create_region_if_needed(sj_zombies *zombies, watched_process *process)
{
    if (process->region != NULL || process->pid == 0 || !needs_region(&zombies->options.settings)) {
        return;
    }
    process->region = make_region(process->path);
    if (process->region != NULL) {
        fill_region(zombies, process->pid, process->region);
        process->was_watched = is_watching(&zombies->options.settings);
        (void)sj_pressure_is_high("", process->pid, &process->limits.pressure_unseen);
    } else {
        send_json(zombies, process->number, "account", sj_clock_ticks(),
                  strdup("{\"not_watched\":\"its shared memory cannot be made\"}"));
    }
}

void sj_zombies_join(sj_zombies *zombies, uint64_t process, pid_t pid, const char *arena_name)
{
    pthread_mutex_lock(&zombies->mutex);
    watched_process *created = new_process(zombies, process, pid, arena_name);
    if (created != NULL) {
        create_region_if_needed(zombies, created);
    }
    pthread_mutex_unlock(&zombies->mutex);
}

void sj_zombies_adopt(sj_zombies *zombies, uint64_t process, const char *arena_name)
{
    pthread_mutex_lock(&zombies->mutex);
    watched_process *created = new_process(zombies, process, 0, arena_name);
    if (created != NULL) {
        created->region = map_region(created->path);
        /* A region that only counts gets no summary. */
        created->was_watched =
            created->region != NULL &&
            (is_watching(&created->region->settings) || created->region->settings.counts == 0);
    }
    pthread_mutex_unlock(&zombies->mutex);
}

/* Copies the patterns and settings of objects. The program does not use the patterns while the
 * lowest bit of `generation` is 1. */
static void copy_objects(sj_zombie_settings *all, const sj_zombie_settings *others)
{
    sj_zombie_objects *target = &all->objects;
    const sj_zombie_objects *source = &others->objects;
    const uint32_t generation = atomic_load(&target->generation) | 1;
    atomic_store(&target->generation, generation);
    memcpy(target->classes, source->classes, sizeof(target->classes));
    memcpy(target->exclude, source->exclude, sizeof(target->exclude));
    memcpy(target->history_of, source->history_of, sizeof(target->history_of));
    memcpy(all->guard.classes, others->guard.classes, sizeof(all->guard.classes));
    target->with_system = source->with_system;
    target->history = source->history;
    target->on_use = source->on_use;
    target->is_on = source->is_on;
    atomic_store(&target->generation, generation + 1);
}

/* Copies the rules of guarded blocks. An allocation at this moment may use a mixture of old and new
 * rules, which does no harm. */
static void copy_guard(sj_zombie_guard *target, const sj_zombie_guard *source)
{
    target->size_count = 0;
    memcpy(target->sizes, source->sizes, sizeof(target->sizes));
    memcpy(target->callers, source->callers, sizeof(target->callers));
    target->size_count = source->size_count;
}

/* Reads the costs of a process. Returns false if the process has ended. */
static bool read_costs(const watched_process *process, cost_readings *now)
{
    clockid_t clock;
    if (clock_getcpuclockid(process->pid, &clock) != 0) {
        return false;
    }
    const sj_zombie_counters *counters = &process->region->counters;
    *now = (cost_readings){.at_ns = sj_clock_ns(CLOCK_MONOTONIC),
                           .ticks = sj_clock_ticks(),
                           .cpu_ns = sj_clock_ns(clock),
                           .heap_ticks = atomic_load(&counters->heap_ticks),
                           .history_ticks = atomic_load(&counters->history_ticks),
                           .delayed_ticks = atomic_load(&counters->delayed_ticks)};
    return true;
}

/* Converts ticks to ns by the rate between two readings. */
static uint64_t ticks_in_ns(uint64_t ticks, const cost_readings *from, const cost_readings *to)
{
    return (uint64_t)((double)ticks * (double)(to->at_ns - from->at_ns) /
                      (double)(to->ticks - from->ticks));
}

static void apply_budget(watched_process *process)
{
    const sj_zombie_budget *budget = &process->budget;
    sj_zombie_limits *limits = &process->limits;
    limits->shift_most = budget->shift > limits->shift_most ? budget->shift : limits->shift_most;
    limits->history_pauses +=
        budget->is_paused && atomic_load(&process->region->is_history_paused) == 0 ? 1 : 0;
    limits->delayed_shift_most = budget->delayed_shift > limits->delayed_shift_most
                                     ? budget->delayed_shift
                                     : limits->delayed_shift_most;
    atomic_store(&process->region->sampling_shift, budget->shift);
    atomic_store(&process->region->delayed_shift, budget->delayed_shift);
    atomic_store(&process->region->is_history_paused, budget->is_paused ? 1 : 0);
}

/* Checks the cost of monitoring since the last check, and changes the limits if needed. */
static void keep_budget(const sj_zombies *zombies, watched_process *process)
{
    const uint32_t per_mille = zombies->options.settings.budget_per_mille;
    const cost_readings last = process->last;
    cost_readings now;
    if (per_mille == 0 || process->region == NULL || process->pid == 0 ||
        sj_clock_ns(CLOCK_MONOTONIC) - last.at_ns < CHECK_NS || !read_costs(process, &now) ||
        (last.at_ns != 0 && now.cpu_ns - last.cpu_ns < CHECK_CPU_NS)) {
        return;
    }
    process->last = now;
    if (last.at_ns == 0 || now.ticks <= last.ticks) {
        return;
    }
    const sj_zombie_costs costs = {
        .program = now.cpu_ns - last.cpu_ns,
        .heap = ticks_in_ns(now.heap_ticks - last.heap_ticks, &last, &now),
        .history = ticks_in_ns(now.history_ticks - last.history_ticks, &last, &now),
        .delayed_free = ticks_in_ns(now.delayed_ticks - last.delayed_ticks, &last, &now)};
    if (sj_zombie_budget_check(&process->budget, &costs, per_mille)) {
        apply_budget(process);
    }
}

/* Copies the settings that may change while a process is monitored. */
static void copy_changeable(sj_zombie_settings *target, const sj_zombie_settings *source)
{
    target->one_in = source->one_in;
    target->on_use = source->on_use;
    target->reports_per_minute = source->reports_per_minute;
    target->vtables = source->vtables;
    target->counts |= source->counts; /* Counting is never turned off. */
    target->budget_per_mille = source->budget_per_mille;
    if (target->delayed_blocks == 0) {
        target->delayed_blocks = source->delayed_blocks;
    }
    target->delayed_kib = source->delayed_kib;
    copy_guard(&target->guard, &source->guard);
    copy_objects(target, source);
}

void sj_zombies_set(sj_zombies *zombies, const sj_zombie_settings *settings)
{
    pthread_mutex_lock(&zombies->mutex);
    if (!needs_region(&zombies->options.settings)) {
        zombies->options.settings = *settings;
    }
    copy_changeable(&zombies->options.settings, settings);
    for (watched_process *at = zombies->processes; at != NULL; at = at->next) {
        if (at->region != NULL) {
            fill_plan(zombies, at->pid, at->region);
            copy_changeable(&at->region->settings, settings);
            at->was_watched = at->was_watched || is_watching(settings);
            atomic_store(&at->region->site_count, 0);
            at->guarded_modules = 0;
            at->budget = (sj_zombie_budget){0};
            apply_budget(at);
        } else {
            create_region_if_needed(zombies, at);
        }
    }
    pthread_mutex_unlock(&zombies->mutex);
}

size_t sj_zombies_relieve(sj_zombies *zombies, pid_t *idle, size_t capacity)
{
    size_t count = 0;
    pthread_mutex_lock(&zombies->mutex);
    for (watched_process *at = zombies->processes; at != NULL; at = at->next) {
        if (at->region == NULL || at->pid == 0 ||
            !sj_pressure_is_high("", at->pid, &at->limits.pressure_unseen)) {
            continue;
        }
        const bool has_not_shrunk =
            atomic_load(&at->region->shrinks_wanted) != atomic_load(&at->region->shrinks_done);
        if (has_not_shrunk && count < capacity) {
            idle[count++] = at->pid;
        } else if (!has_not_shrunk) {
            atomic_fetch_add(&at->region->shrinks_wanted, 1);
        }
    }
    pthread_mutex_unlock(&zombies->mutex);
    return count;
}

/* Returns an unwinder that knows all modules of the region, or NULL if that fails. */
static sj_unwinder *walker_of(watched_process *process)
{
    uint32_t count = atomic_load_explicit(&process->region->module_count, memory_order_acquire);
    count = count < SJ_ZOMBIE_MODULES ? count : SJ_ZOMBIE_MODULES;
    if (process->walker == NULL || process->walker_modules != count) {
        sj_unwinder_free(process->walker);
        process->walker = NULL;
        process->walker_modules = count;
        if (sj_stack_walk_prepare(process->region->modules, count, &process->walker) != SJ_OK) {
            process->walker = NULL;
        }
    }
    return process->walker;
}

static void free_deep_stack(sj_zombie_region *region, const sj_zombie_report *report)
{
    const uint32_t deep = report->deep_stack;
    if (deep != 0 && deep <= SJ_ZOMBIE_DEEP_STACKS) {
        atomic_store_explicit(&region->deep[deep - 1].is_used, 0, memory_order_release);
    }
}

static void send_reports(const sj_zombies *zombies, watched_process *process)
{
    for (uint32_t i = 0; process->region != NULL && i < SJ_ZOMBIE_REPORTS; i++) {
        sj_zombie_report *report = &process->region->reports[i];
        if (atomic_load_explicit(&report->state, memory_order_acquire) != SJ_ZOMBIE_REPORT_FULL) {
            continue;
        }
        const char *kind = sj_zombie_kind_text(report->kind);
        const uint64_t ticks = report->use.ticks;
        if (kind != NULL) {
            const sj_frame_namer namer = {.walker = walker_of(process), .names = zombies->names};
            send_json(zombies, process->number, kind, ticks,
                      sj_zombie_report_json(&namer, process->region, report));
        }
        free_deep_stack(process->region, report);
        atomic_store_explicit(&report->state, SJ_ZOMBIE_REPORT_FREE, memory_order_release);
    }
}

/* Adds the guard sites of modules that were loaded since the last call. */
static void follow_modules(const sj_zombies *zombies, watched_process *process)
{
    const char *patterns = zombies->options.settings.guard.callers;
    const uint32_t count =
        process->region != NULL && patterns[0] != '\0'
            ? atomic_load_explicit(&process->region->module_count, memory_order_acquire)
            : 0;
    while (process->guarded_modules < count && process->guarded_modules < SJ_ZOMBIE_MODULES) {
        sj_zombie_module module = process->region->modules[process->guarded_modules++];
        module.path[SJ_ZOMBIE_PATH_BYTES - 1] = '\0';
        sj_guard_sites_add(process->region, patterns, module.bias, module.path);
    }
}

void sj_zombies_poll(sj_zombies *zombies)
{
    pthread_mutex_lock(&zombies->mutex);
    for (watched_process *at = zombies->processes; at != NULL; at = at->next) {
        follow_modules(zombies, at);
        keep_budget(zombies, at);
        send_reports(zombies, at);
    }
    pthread_mutex_unlock(&zombies->mutex);
}

static void free_process(watched_process *process)
{
    sj_unwinder_free(process->walker);
    if (process->region != NULL) {
        munmap(process->region, sizeof(*process->region));
        unlink(process->path);
    }
    free(process);
}

const char *sj_zombies_not_counted(sj_zombies *zombies, pid_t pid)
{
    const char *reason = NULL;
    pthread_mutex_lock(&zombies->mutex);
    for (const watched_process *at = zombies->processes; at != NULL; at = at->next) {
        if (at->pid == pid && at->region != NULL && at->region->settings.counts != 0) {
            const uint32_t refusal = atomic_load(&at->region->counting_refusal);
            reason = refusal != SJ_ZOMBIE_MONITORED ? sj_zombie_refusal_text(refusal) : NULL;
        }
    }
    pthread_mutex_unlock(&zombies->mutex);
    return reason;
}

/* If allocated bytes could not be counted in a process, reports the reason. */
static void send_counting(const sj_zombies *zombies, const watched_process *process)
{
    const uint32_t refusal = atomic_load(&process->region->counting_refusal);
    char json[256];
    if (refusal == SJ_ZOMBIE_MONITORED) {
        return;
    }
    snprintf(json, sizeof(json), "{\"not_counted\":\"%s\"}", sj_zombie_refusal_text(refusal));
    const sj_report report = {.ticks = sj_clock_ticks(),
                              .process = process->number,
                              .monitor = "memory",
                              .kind = "account",
                              .json = json,
                              .json_bytes = strlen(json)};
    (void)!sj_frame_writer_report(zombies->options.writer, &report);
}

static uint64_t monitoring_ticks_of(const watched_process *process)
{
    if (process->region == NULL) {
        return 0;
    }
    const sj_zombie_counters *counters = &process->region->counters;
    return atomic_load(&counters->heap_ticks) + atomic_load(&counters->history_ticks) +
           atomic_load(&counters->delayed_ticks);
}

uint64_t sj_zombies_watch_ticks(sj_zombies *zombies)
{
    if (zombies == NULL) {
        return 0;
    }
    pthread_mutex_lock(&zombies->mutex);
    uint64_t ticks = zombies->ended_ticks;
    for (const watched_process *at = zombies->processes; at != NULL; at = at->next) {
        ticks += monitoring_ticks_of(at);
    }
    pthread_mutex_unlock(&zombies->mutex);
    return ticks;
}

/* Sends the last reports and the summary of a process, and frees it. */
static void end_process(sj_zombies *zombies, watched_process **link)
{
    watched_process *process = *link;
    zombies->ended_ticks += monitoring_ticks_of(process);
    send_reports(zombies, process);
    if (process->region != NULL && process->region->settings.counts != 0) {
        send_counting(zombies, process);
    }
    if (process->region != NULL && process->was_watched) {
        const uint32_t refusal = atomic_load(&process->region->refusal);
        send_json(zombies, process->number, "account", sj_clock_ticks(),
                  sj_zombie_account_json(process->region, refusal, &process->limits));
    }
    *link = process->next;
    free_process(process);
}

void sj_zombies_end(sj_zombies *zombies, uint64_t process)
{
    pthread_mutex_lock(&zombies->mutex);
    for (watched_process **link = &zombies->processes; *link != NULL;) {
        if ((*link)->number == process) {
            end_process(zombies, link);
        } else {
            link = &(*link)->next;
        }
    }
    pthread_mutex_unlock(&zombies->mutex);
}

void sj_zombies_free(sj_zombies *zombies)
{
    if (zombies == NULL) {
        return;
    }
    while (zombies->processes != NULL) {
        watched_process *freed = zombies->processes;
        zombies->processes = freed->next;
        free_process(freed);
    }
    free_planned(zombies->planned);
    sj_allocator_files_free(zombies->files);
    sj_method_names_free(zombies->names);
    pthread_mutex_destroy(&zombies->mutex);
    free(zombies);
}
