/* Design notes.
 *
 * The function that is called most gives the least information for its cost: its calls are many and
 * short, and without it most other functions can stay. So functions are unhooked in the order of
 * the cost of their calls in the last interval, until the rest fits the budget. A call without a
 * clock costs SJ_UNTIMED_PRICE.
 *
 * A program's behaviour changes quickly, and a new hot function is recorded completely until the
 * next check. So the drain, which counts the calls, wakes the governor when they may have used up a
 * quarter of the balance (the quota). Otherwise the governor checks only a few times a second.
 *
 * CPU time is that of the process's clock, which includes the cost of recording. The rest is the
 * program's own time, and the budget is a share of that. `balance_ns` is what may be spent. It
 * grows with the program's own time, up to a limit, so that a long quiet time does not pay for a
 * slow second. It falls with every call; debts are never cancelled. It pays for bursts, and for
 * attempts to hook a function again.
 *
 * Changing methods of a runtime may take seconds. The mutex is free meanwhile, so that the drain
 * can add and remove processes. A removed process stays in the list until the change is done. */
#include "agent/modes/overhead_governor.h"

#include "agent/host/clock.h"
#include "proto/base/array.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    FIRST_TICK_NS = 4 * 1000 * 1000,
    LAST_TICK_NS = 250 * 1000 * 1000,
    LEAST_CPU_NS = 500 * 1000,   /* a shorter interval is not measured */
    LEAST_QUOTA_NS = 250 * 1000, /* least cost of calls that wakes the governor */
    /* CPU time in which a hot function runs before it is unhooked again */
    NOTICED_NS = 4 * 1000 * 1000,
    TOGGLE_NS = 200 * 1000, /* approximate CPU time that a stop costs the program */
    SUSPENDED_TICK_NS = 20 * 1000 * 1000,
    MUTED_CALL_NS = 4, /* approximate cost of two probes whose function is muted */
    CHOSEN_MAX = 4096, /* per decision */
    RETRIED_MAX = 256
};

#define FIRST_BACK_OFF_NS UINT64_C(1000000000)
#define LAST_BACK_OFF_NS UINT64_C(64000000000)
#define REFUSED_PAUSE_NS UINT64_C(5000000000)
#define SHARE_WANTED 0.85 /* share of the budget; the rest covers errors of the estimate */
#define SHARE_WHEN_IN_DEBT 0.3
#define SHARE_OF_MUTED 0.25
/* limit of the balance: the budget for this much own time of the program, in ns */
#define BALANCE_CAP_NS 1e9

typedef struct function_state {
    uint64_t last_calls;
    uint64_t last_untimed; /* number of untimed calls among them */
    uint64_t retry_ns;
    uint64_t back_off_ns;
    double calls_per_ns; /* per ns of CPU time, when it was unhooked */
    double price_per_ns; /* cost of these calls, in timed calls */
    bool is_free;
    bool is_rare;  /* see sj_governed_process_is_rare */
    bool is_muted; /* unhooked, but its probes are still there */
} function_state;

struct sj_governed_process {
    sj_governed_process *next;
    uint64_t process;
    pid_t pid;
    clockid_t clock;
    uint64_t *calls; /* [SJ_GOVERNED_PROCESS_FUNCTIONS], written by the drain */
    /* [SJ_GOVERNED_PROCESS_FUNCTIONS], untimed calls among these; written by the drain */
    uint64_t *untimed;
    function_state *functions; /* [SJ_GOVERNED_PROCESS_FUNCTIONS] */
    sj_unhooked_set *freed;    /* unhooked functions of the process; shared */
    bool is_changing;          /* a thread is changing it without the mutex */
    bool is_gone;              /* removed meanwhile: delete it later */
    _Atomic uint32_t highest;  /* highest counted id, plus one */
    uint64_t last_cpu_ns;
    double own_ns; /* CPU time without recording */
    double spent_ns;
    double balance_ns;    /* may be spent; below 0: debt */
    double muted_share;   /* share of the program's own time for muted probes */
    double unsaved_share; /* share for muted probes that do not fit the budget */
    sem_t *wake;          /* semaphore of the governor */
    double pending;       /* timed calls since the governor was last woken; written by the drain */
    _Atomic uint64_t quota;  /* number of timed calls that wakes the governor */
    uint64_t retry_after_ns; /* after a refused change */
};

typedef struct candidate {
    uint32_t function;
    uint64_t calls; /* in the interval */
    double price;   /* cost of these calls, in timed calls */
} candidate;

/* One interval of one process. */
typedef struct budget_interval {
    double price;     /* cost of all calls, in timed calls */
    double passed_ns; /* CPU time of the interval */
    double own_ns;
    double spent_ns; /* of governed functions */
    double overhead; /* share of the program's own CPU time */
    candidate *candidates;
    size_t count;
} budget_interval;

struct sj_overhead_governor {
    sj_overhead_governor_options options;
    pthread_t thread;
    bool thread_started;
    atomic_bool finish;
    sem_t wake;
    pthread_mutex_t check_mutex; /* held during a whole check; locked before `mutex` */
    candidate *candidates;       /* only the checking thread uses it */
    size_t candidate_capacity;
    pthread_mutex_t mutex; /* guards the members below */
    bool is_suspended;
    double budget_percent;
    sj_governed_process *processes;
    sj_overhead_governor_counters counters;
    double own_ns; /* of removed processes */
    double spent_ns;
    uint64_t next_decision;
};

static uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) == 0
               ? (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec
               : 0;
}

static void *map_lazily(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static void unmap(void *memory, size_t bytes)
{
    if (memory != NULL) {
        munmap(memory, bytes);
    }
}

static void free_governed(sj_governed_process *governed)
{
    unmap(governed->calls, SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*governed->calls));
    unmap(governed->untimed, SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*governed->untimed));
    unmap(governed->functions, SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*governed->functions));
    sj_unhooked_set_release(governed->freed);
    free(governed);
}

uint64_t *sj_governed_process_calls(sj_governed_process *governed)
{
    return governed->calls;
}

uint64_t *sj_governed_process_untimed(sj_governed_process *governed)
{
    return governed->untimed;
}

void sj_governed_process_count(sj_governed_process *governed, double calls, uint32_t highest)
{
    if (highest >= atomic_load_explicit(&governed->highest, memory_order_relaxed)) {
        atomic_store_explicit(&governed->highest, highest + 1, memory_order_relaxed);
    }
    governed->pending += calls;
    const uint64_t quota = atomic_load_explicit(&governed->quota, memory_order_relaxed);
    if (governed->pending >= (double)quota) {
        governed->pending = 0;
        sem_post(governed->wake);
    }
}

bool sj_governed_process_is_rare(const sj_governed_process *governed, uint32_t function)
{
    return function < SJ_GOVERNED_PROCESS_FUNCTIONS && governed->functions[function].is_rare;
}

static double budget_of(const sj_overhead_governor *governor)
{
    return governor->budget_percent / 100;
}

static void send_decision(sj_overhead_governor *governor, const sj_governed_process *governed,
                          uint32_t function, const char *what, const char *reason, uint64_t calls,
                          double overhead)
{
    const sj_slice no_payload = {0};
    Sojourn__Decision message = SOJOURN__DECISION__INIT;
    message.session_id = sj_frame_writer_session_bytes(governor->options.writer);
    message.decision = ++governor->next_decision;
    message.ticks = sj_clock_ticks();
    message.process = governed->process;
    message.function = function;
    message.what = (char *)(uintptr_t)what;
    message.reason = (char *)(uintptr_t)reason;
    message.calls = calls;
    message.total_calls =
        function != 0 ? __atomic_load_n(&governed->calls[function], __ATOMIC_RELAXED) : 0;
    message.overhead_ppm = overhead > 0 && overhead < 4000 ? (uint32_t)(overhead * 1e6) : 0;
    message.budget_ppm = (uint32_t)(budget_of(governor) * 1e6 + 0.5);
    (void)!sj_frame_writer_send(governor->options.writer, SJ_FRAME_DECISION, &message.base,
                                no_payload);
}

static void spend(sj_governed_process *governed, double ns)
{
    governed->spent_ns += ns;
    governed->balance_ns -= ns;
}

static void earn(const sj_overhead_governor *governor, sj_governed_process *governed, double own_ns)
{
    const double cap_ns = budget_of(governor) * BALANCE_CAP_NS;
    governed->balance_ns += budget_of(governor) * own_ns;
    governed->balance_ns = governed->balance_ns < cap_ns ? governed->balance_ns : cap_ns;
}

/* Sets the quota: as many timed calls as a quarter of the balance pays for, but at least
 * LEAST_QUOTA_NS. */
static void set_quota(const sj_overhead_governor *governor, sj_governed_process *governed)
{
    const double quarter_ns = governed->balance_ns / 4;
    const double quota_ns = quarter_ns > LEAST_QUOTA_NS ? quarter_ns : LEAST_QUOTA_NS;
    const uint64_t quota =
        budget_of(governor) > 0 ? (uint64_t)(quota_ns / governor->options.call_ns) + 1 : UINT64_MAX;
    atomic_store_explicit(&governed->quota, quota, memory_order_relaxed);
}

/* Adds the calls of a function since the last check to the interval. */
static void add_calls(const sj_governed_process *governed, uint32_t id, budget_interval *interval)
{
    function_state *state = &governed->functions[id];
    /* In this order, because the drain counts a call before it counts that it was untimed. */
    const uint64_t untimed = __atomic_load_n(&governed->untimed[id], __ATOMIC_ACQUIRE);
    const uint64_t now = __atomic_load_n(&governed->calls[id], __ATOMIC_RELAXED);
    const uint64_t calls = now - state->last_calls;
    if (calls == 0) {
        return;
    }
    const double price =
        (double)calls - (1 - SJ_UNTIMED_PRICE) * (double)(untimed - state->last_untimed);
    state->last_calls = now;
    state->last_untimed = untimed;
    interval->price += price;
    interval->candidates[interval->count++] =
        (candidate){.function = id, .calls = calls, .price = price};
}

/* Measures the interval since the last check; returns SJ_EAGAIN if too little happened. */
static sj_status measure(sj_overhead_governor *governor, sj_governed_process *governed,
                         budget_interval *interval)
{
    const uint64_t cpu_ns = governor->options.clock_ns(governed->clock);
    if (cpu_ns < governed->last_cpu_ns + LEAST_CPU_NS) {
        return SJ_EAGAIN;
    }
    const uint32_t highest = atomic_load_explicit(&governed->highest, memory_order_relaxed);
    SJ_TRY(sj_array_reserve(&governor->candidates, &governor->candidate_capacity, 0,
                            (size_t)highest + 1, sizeof(*governor->candidates)));
    interval->candidates = governor->candidates;
    for (uint32_t id = 1; id < highest; id++) {
        add_calls(governed, id, interval);
    }
    const double passed_ns = (double)(cpu_ns - governed->last_cpu_ns);
    const double spent_ns =
        interval->price * governor->options.call_ns + governed->muted_share * passed_ns;
    const double unsaved_ns = governed->unsaved_share * passed_ns;
    /* If calls are read late, their cost can exceed the interval's CPU time. */
    const double own_ns = passed_ns - spent_ns - unsaved_ns;
    interval->passed_ns = passed_ns;
    interval->own_ns = own_ns > passed_ns / 20 ? own_ns : passed_ns / 20;
    interval->spent_ns = spent_ns;
    interval->overhead = (spent_ns + unsaved_ns) / interval->own_ns;
    governed->last_cpu_ns = cpu_ns;
    governed->own_ns += interval->own_ns;
    governed->spent_ns +=
        unsaved_ns; /* not part of interval->spent_ns, so it causes no unhooking */
    spend(governed, spent_ns);
    earn(governor, governed, interval->own_ns);
    return SJ_OK;
}

static int compare_prices_down(const void *left, const void *right)
{
    const double a = ((const candidate *)left)->price;
    const double b = ((const candidate *)right)->price;
    return a < b ? 1 : a > b ? -1 : 0;
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Duration of a change. */
typedef struct change_cost {
    double spent_ns;
    uint64_t stopped_ns;
} change_cost;

static sj_status change_methods(const sj_overhead_governor_options *options,
                                sj_method_change *change, change_cost *cost, sj_error *error)
{
    uint64_t cost_ns = 0;
    if (options->hook_methods == NULL || change->count == 0) {
        return SJ_OK;
    }
    const sj_status status = options->hook_methods(options->context, change, &cost_ns, error);
    cost->spent_ns += (double)cost_ns;
    return status;
}

/* Hooks or unhooks functions. The caller must not hold the mutex. */
static sj_status change_all(const sj_overhead_governor_options *options, sj_method_change *change,
                            change_cost *cost, sj_error *error)
{
    sj_hook_functions_report report = {0};
    sj_status status = SJ_OK;
    const size_t count = change->count;
    qsort(change->functions, count, sizeof(*change->functions), compare_ids);
    SJ_TRY(change_methods(options, change, cost, error));
    const size_t left_count = change->count;
    if (left_count != 0) {
        status = options->hook_functions(change->pid, change->functions, left_count, change->on,
                                         change->freed, &report, error);
        cost->spent_ns += status == SJ_OK ? TOGGLE_NS : 0;
    }
    if (status != SJ_OK) { /* undo the change of methods, because no decision will report it */
        sj_error ignored = {0};
        sj_method_change back = *change;
        back.on = !change->on;
        back.functions += left_count;
        back.count = count - left_count;
        (void)!change_methods(options, &back, cost, &ignored);
    }
    cost->stopped_ns = report.stopped_ns;
    return status;
}

/* Calls change_all with the mutex released, and charges its cost to the process. */
static sj_status change_unlocked(sj_overhead_governor *governor, sj_governed_process *governed,
                                 sj_method_change *change, sj_error *error)
{
    change_cost cost = {0};
    governed->is_changing = true;
    pthread_mutex_unlock(&governor->mutex);
    const sj_status status = change_all(&governor->options, change, &cost, error);
    pthread_mutex_lock(&governor->mutex);
    governed->is_changing = false;
    spend(governed, cost.spent_ns);
    governor->counters.stopped_ns += cost.stopped_ns;
    return status;
}

/* Updates the shares of CPU time for functions whose probes were muted or unmuted. Functions that
 * are not rare are muted only if their probes cannot be removed. */
static void note_muted(sj_governed_process *governed, const sj_method_change *change)
{
    const uint32_t *muted = change->functions + change->count;
    for (size_t i = 0; i < change->muted; i++) {
        function_state *state = &governed->functions[muted[i]];
        const double share = state->calls_per_ns * MUTED_CALL_NS;
        state->is_muted = !change->on;
        double *sum = state->is_rare ? &governed->muted_share : &governed->unsaved_share;
        *sum += change->on ? -share : share;
    }
}

/* Changes the functions. Returns false if the change failed, or if the process is gone. */
static bool toggle(sj_overhead_governor *governor, sj_governed_process *governed,
                   const uint32_t *ids, size_t count, bool on, uint64_t now_ns)
{
    uint32_t changed[CHOSEN_MAX];
    sj_error error = {0};
    sj_method_change change = {.process = governed->process,
                               .pid = governed->pid,
                               .on = on,
                               .governed = governed,
                               .freed = governed->freed,
                               .functions = changed,
                               .count = count};
    memcpy(changed, ids, count * sizeof(*ids));
    const sj_status status = change_unlocked(governor, governed, &change, &error);
    if (governed->is_gone) {
        return false;
    }
    if (status != SJ_OK) {
        governor->counters.failures++;
        governed->retry_after_ns = now_ns + REFUSED_PAUSE_NS;
        if (governor->options.clock_ns(governed->clock) != 0) {
            send_decision(governor, governed, 0, "refused", error.text, 0, 0);
        }
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        governed->functions[ids[i]].is_free = !on;
    }
    note_muted(governed, &change);
    return true;
}

static void record_unhooked(sj_governed_process *governed, const candidate *chosen, uint64_t now_ns)
{
    function_state *state = &governed->functions[chosen->function];
    state->back_off_ns = state->back_off_ns == 0 ? FIRST_BACK_OFF_NS : state->back_off_ns * 2;
    if (state->back_off_ns > LAST_BACK_OFF_NS) {
        state->back_off_ns = LAST_BACK_OFF_NS;
    }
    state->retry_ns = now_ns + state->back_off_ns;
}

/* Decides which of the functions to unhook may keep their probes: the least called ones, as far as
 * the budget allows. */
static void mark_rare(const sj_overhead_governor *governor, sj_governed_process *governed,
                      const budget_interval *interval, size_t count)
{
    double share = governed->muted_share;
    /* If almost none of the time is the program's own, many calls were read late. */
    const double least_ns = interval->passed_ns / 3;
    const double own_ns = interval->own_ns > least_ns ? interval->own_ns : least_ns;
    for (size_t i = count; i-- > 0;) {
        function_state *state = &governed->functions[interval->candidates[i].function];
        state->calls_per_ns = (double)interval->candidates[i].calls / own_ns;
        state->price_per_ns = interval->candidates[i].price / own_ns;
        share += state->calls_per_ns * MUTED_CALL_NS;
        state->is_rare = share <= budget_of(governor) * SHARE_OF_MUTED;
    }
}

/* Unhooks the most expensive functions until the cost of the interval would have been at most
 * `wanted` of its time. */
static void reduce(sj_overhead_governor *governor, sj_governed_process *governed,
                   budget_interval *interval, double wanted, uint64_t now_ns)
{
    uint32_t ids[CHOSEN_MAX];
    size_t count = 0;
    double left = interval->price;
    wanted -= governed->muted_share;
    qsort(interval->candidates, interval->count, sizeof(*interval->candidates),
          compare_prices_down);
    for (size_t i = 0; i < interval->count && count < CHOSEN_MAX &&
                       left * governor->options.call_ns > wanted * interval->own_ns;
         i++) {
        left -= interval->candidates[i].price;
        if (!governed->functions[interval->candidates[i].function].is_free) {
            interval->candidates[count] = interval->candidates[i];
            ids[count++] = interval->candidates[i].function;
        }
    }
    mark_rare(governor, governed, interval, count);
    if (count == 0 || !toggle(governor, governed, ids, count, false, now_ns)) {
        return;
    }
    governor->counters.unhooked += count;
    for (size_t i = 0; i < count; i++) {
        const candidate *chosen = &interval->candidates[i];
        record_unhooked(governed, chosen, now_ns);
        send_decision(governor, governed, chosen->function, "unhook",
                      governed->functions[chosen->function].is_muted
                          ? "most calls for their cost; muted, its probes stay"
                          : "most calls for their cost",
                      chosen->calls, interval->overhead);
    }
}

/* Hooks functions again whose pause is over, as far as the balance allows. */
static void retry(sj_overhead_governor *governor, sj_governed_process *governed,
                  const budget_interval *interval, uint64_t now_ns)
{
    uint32_t ids[RETRIED_MAX];
    size_t count = 0;
    double balance_ns = governed->balance_ns / 2 - TOGGLE_NS;
    const uint32_t highest = atomic_load_explicit(&governed->highest, memory_order_relaxed);
    for (uint32_t id = 1; id < highest && count < RETRIED_MAX; id++) {
        const function_state *state = &governed->functions[id];
        const double cost_ns = state->price_per_ns * governor->options.call_ns * NOTICED_NS;
        if (!state->is_free || state->retry_ns > now_ns || cost_ns > balance_ns) {
            continue;
        }
        balance_ns -= cost_ns;
        ids[count++] = id;
    }
    if (count == 0 || !toggle(governor, governed, ids, count, true, now_ns)) {
        return;
    }
    governor->counters.rehooked += count;
    for (size_t i = 0; i < count; i++) {
        send_decision(governor, governed, ids[i], "rehook", "its pause is over", 0,
                      interval->overhead);
    }
}

static void govern_process(sj_overhead_governor *governor, sj_governed_process *governed,
                           uint64_t now_ns)
{
    budget_interval interval = {0};
    if (now_ns < governed->retry_after_ns || measure(governor, governed, &interval) != SJ_OK) {
        return;
    }
    /* Savings pay for a short burst, not for a lasting one. */
    const bool in_debt = governed->balance_ns < 0;
    const double wanted = budget_of(governor) * (in_debt ? SHARE_WHEN_IN_DEBT : SHARE_WANTED);
    const double burst_ns = in_debt ? 0 : governed->balance_ns / 8;
    if (interval.spent_ns > wanted * interval.own_ns + burst_ns) {
        reduce(governor, governed, &interval, wanted, now_ns);
    } else if (!in_debt) {
        retry(governor, governed, &interval, now_ns);
    }
    set_quota(governor, governed);
}

static void update_overhead_percent(sj_overhead_governor *governor)
{
    double own_ns = governor->own_ns;
    double spent_ns = governor->spent_ns;
    for (const sj_governed_process *each = governor->processes; each != NULL; each = each->next) {
        own_ns += each->own_ns;
        spent_ns += each->spent_ns;
    }
    governor->counters.overhead_percent = own_ns > 0 ? 100 * spent_ns / own_ns : 0;
}

/* Sleeps until the drain has counted many calls, or for `pause_ns`. */
static void wait_for_calls(sj_overhead_governor *governor, uint64_t pause_ns)
{
    const uint64_t until_ns = read_clock_ns(CLOCK_MONOTONIC) + pause_ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                   .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};
    (void)sem_clockwait(&governor->wake, CLOCK_MONOTONIC, &until);
    while (sem_trywait(&governor->wake) == 0) {
    }
}

/* Deletes a process, but keeps its totals. */
static void delete_process(sj_overhead_governor *governor, sj_governed_process *governed)
{
    for (sj_governed_process **at = &governor->processes; *at != NULL; at = &(*at)->next) {
        if (*at == governed) {
            *at = governed->next;
            break;
        }
    }
    governor->own_ns += governed->own_ns;
    governor->spent_ns += governed->spent_ns;
    update_overhead_percent(governor);
    free_governed(governed);
}

bool sj_overhead_governor_check(sj_overhead_governor *governor)
{
    pthread_mutex_lock(&governor->check_mutex);
    pthread_mutex_lock(&governor->mutex);
    const uint64_t now_ns = governor->options.clock_ns(CLOCK_MONOTONIC);
    const uint64_t decisions = governor->next_decision;
    sj_governed_process *each = governor->processes;
    while (each != NULL && !governor->is_suspended) {
        govern_process(governor, each, now_ns); /* releases the mutex, so the list may change */
        sj_governed_process *next = each->next;
        if (each->is_gone) {
            delete_process(governor, each);
        }
        each = next;
    }
    update_overhead_percent(governor);
    const bool changed = governor->next_decision != decisions;
    pthread_mutex_unlock(&governor->mutex);
    pthread_mutex_unlock(&governor->check_mutex);
    return changed;
}

/* Returns the time until the next check. It is short after a change, to see the effect, and then
 * becomes longer. */
static uint64_t choose_pause(sj_overhead_governor *governor, uint64_t last_ns, bool changed)
{
    pthread_mutex_lock(&governor->mutex);
    const bool idle = governor->processes == NULL;
    const bool is_suspended = governor->is_suspended;
    pthread_mutex_unlock(&governor->mutex);
    const uint64_t pause_ns = changed || idle ? FIRST_TICK_NS : last_ns + last_ns / 4;
    return is_suspended ? SUSPENDED_TICK_NS : pause_ns > LAST_TICK_NS ? LAST_TICK_NS : pause_ns;
}

static void *run(void *argument)
{
    sj_overhead_governor *governor = argument;
    uint64_t pause_ns = FIRST_TICK_NS;
    while (!atomic_load(&governor->finish)) {
        wait_for_calls(governor, pause_ns);
        const bool changed = sj_overhead_governor_check(governor);
        pause_ns = choose_pause(governor, pause_ns, changed);
    }
    return NULL;
}

sj_status sj_overhead_governor_start(const sj_overhead_governor_options *options,
                                     sj_overhead_governor **governor, sj_error *error)
{
    sj_overhead_governor *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->options = *options;
    if (options->clock_ns == NULL) {
        made->options.clock_ns = read_clock_ns;
    }
    if (options->hook_functions == NULL) {
        made->options.hook_functions = sj_hook_functions;
    }
    made->is_suspended = true;
    pthread_mutex_init(&made->check_mutex, NULL);
    pthread_mutex_init(&made->mutex, NULL);
    sem_init(&made->wake, 0, 0);
    if (!options->threadless && pthread_create(&made->thread, NULL, run, made) != 0) {
        sj_overhead_governor_stop(made);
        return sj_fail(error, SJ_EIO, "cannot start the thread of the overhead budget");
    }
    made->thread_started = !options->threadless;
    *governor = made;
    return SJ_OK;
}

void sj_overhead_governor_stop(sj_overhead_governor *governor)
{
    if (governor == NULL) {
        return;
    }
    if (governor->thread_started) {
        atomic_store(&governor->finish, true);
        sem_post(&governor->wake);
        pthread_join(governor->thread, NULL);
    }
    while (governor->processes != NULL) {
        sj_governed_process *gone = governor->processes;
        governor->processes = gone->next;
        free_governed(gone);
    }
    pthread_mutex_destroy(&governor->mutex);
    pthread_mutex_destroy(&governor->check_mutex);
    sem_destroy(&governor->wake);
    free(governor->candidates);
    free(governor);
}

/* Returns true if it locked the mutex within the limit. */
static bool lock_within(pthread_mutex_t *mutex, uint64_t limit_ns)
{
    const uint64_t until_ns = read_clock_ns(CLOCK_MONOTONIC) + limit_ns;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / UINT64_C(1000000000)),
                                   .tv_nsec = (long)(until_ns % UINT64_C(1000000000))};
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until) == 0;
}

bool sj_overhead_governor_suspend(sj_overhead_governor *governor, uint64_t limit_ns)
{
    pthread_mutex_lock(&governor->mutex);
    governor->is_suspended = true;
    pthread_mutex_unlock(&governor->mutex);
    if (!lock_within(&governor->check_mutex, limit_ns)) {
        return false;
    }
    pthread_mutex_unlock(&governor->check_mutex);
    return true;
}

/* Restarts the measurement of a process. Its counters of calls continue. */
static void restart_measurement(const sj_overhead_governor *governor, sj_governed_process *governed)
{
    const uint32_t highest = atomic_load_explicit(&governed->highest, memory_order_relaxed);
    governed->last_cpu_ns = governor->options.clock_ns(governed->clock);
    governed->own_ns = (double)governed->last_cpu_ns;
    governed->spent_ns = 0;
    governed->balance_ns = 0;
    governed->muted_share = 0;
    governed->unsaved_share = 0;
    governed->retry_after_ns = 0;
    for (uint32_t id = 0; id < highest; id++) {
        governed->functions[id] = (function_state){
            .last_untimed = __atomic_load_n(&governed->untimed[id], __ATOMIC_ACQUIRE),
            .last_calls = __atomic_load_n(&governed->calls[id], __ATOMIC_RELAXED)};
    }
    earn(governor, governed, governed->own_ns);
    set_quota(governor, governed);
}

void sj_overhead_governor_resume(sj_overhead_governor *governor, double budget_percent)
{
    pthread_mutex_lock(&governor->mutex);
    governor->budget_percent = budget_percent;
    for (sj_governed_process *each = governor->processes; each != NULL && governor->is_suspended;
         each = each->next) {
        restart_measurement(governor, each);
    }
    governor->is_suspended = budget_percent <= 0;
    pthread_mutex_unlock(&governor->mutex);
}

sj_status sj_overhead_governor_add(sj_overhead_governor *governor, uint64_t process, pid_t pid,
                                   sj_unhooked_set *freed, sj_governed_process **governed)
{
    sj_governed_process *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SJ_ENOMEM;
    }
    made->process = process;
    made->pid = pid;
    made->freed = sj_unhooked_set_share(freed);
    made->calls = map_lazily(SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*made->calls));
    made->untimed = map_lazily(SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*made->untimed));
    made->functions = map_lazily(SJ_GOVERNED_PROCESS_FUNCTIONS * sizeof(*made->functions));
    if (made->calls == NULL || made->untimed == NULL || made->functions == NULL ||
        clock_getcpuclockid(pid, &made->clock) != 0) {
        free_governed(made);
        return SJ_ENOMEM;
    }
    made->wake = &governor->wake;
    pthread_mutex_lock(&governor->mutex);
    restart_measurement(governor, made);
    made->next = governor->processes;
    governor->processes = made;
    pthread_mutex_unlock(&governor->mutex);
    *governed = made;
    return SJ_OK;
}

void sj_overhead_governor_remove(sj_overhead_governor *governor, sj_governed_process *governed)
{
    pthread_mutex_lock(&governor->mutex);
    governed->is_gone = true;
    if (!governed->is_changing) {
        delete_process(governor, governed);
    }
    pthread_mutex_unlock(&governor->mutex);
}

void sj_overhead_governor_get_counters(sj_overhead_governor *governor,
                                       sj_overhead_governor_counters *counters)
{
    pthread_mutex_lock(&governor->mutex);
    *counters = governor->counters;
    pthread_mutex_unlock(&governor->mutex);
}
