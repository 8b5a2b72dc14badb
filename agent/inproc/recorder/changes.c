#include "agent/inproc/recorder/changes.h"

#include "agent/inproc/recorder/callers.h"
#include "agent/inproc/recorder/internal.h"
#include "proto/block/value.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

sj_changes *sj_recorder_changes;

/* For each place of a rule: the rule's version with the lowest bit set while this process is
 * between the rule's two marks; else 0. A later rule in the same place has another version. */
static _Atomic uint32_t between[SJ_CHANGE_RULES];

static void forget_marks(void)
{
    for (uint32_t i = 0; i < SJ_CHANGE_RULES; i++) {
        atomic_store_explicit(&between[i], 0, memory_order_relaxed);
    }
}

/* True if the rules are meant for this program, not for a program that it runs. */
static bool is_of_this_program(const sj_changes *changes)
{
    char program[SJ_CHANGES_PATH];
    const long bytes =
        SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof(program) - 1, 0, 0);
    for (long i = 0; i < bytes; i++) {
        if (program[i] != changes->program[i] || program[i] == '\0') {
            return false;
        }
    }
    return bytes > 0 && changes->program[bytes] == '\0';
}

/* Maps a file that has at least the table's size: reading past the end of a shorter file would kill
 * the program. The recorder gives the file its name when the file is complete. */
static sj_changes *map_whole(int file)
{
    struct stat status;
    if (SJ_SYS(SYS_fstat, file, &status, 0, 0, 0, 0) != 0 ||
        status.st_size < (off_t)sizeof(sj_changes)) {
        return NULL;
    }
    sj_changes *mapped =
        sj_sys_map(NULL, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return sj_sys_failed(mapped) ? NULL : mapped;
}

void sj_recorder_map_changes(const char *directory)
{
    const long folder = sj_sys_open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (folder < 0) {
        return;
    }
    const long file =
        sj_sys_open_at((int)folder, SJ_CHANGES_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    (void)sj_sys_close((int)folder);
    if (file < 0) {
        return;
    }
    sj_changes *mapped = map_whole((int)file);
    (void)sj_sys_close((int)file);
    if (mapped == NULL) {
        return;
    }
    if (mapped->magic != SJ_CHANGES_MAGIC || !is_of_this_program(mapped)) {
        (void)sj_sys_unmap(mapped, sizeof(*mapped));
        return;
    }
    /* A forked child still has its parent's table. It keeps the marks that its parent has
     * passed. */
    if (sj_recorder_changes == NULL) {
        forget_marks();
    }
    sj_recorder_unmap_changes(); /* unmaps the parent's table in a forked child */
    sj_recorder_changes = mapped;
}

void sj_recorder_unmap_changes(void)
{
    sj_changes *mapped = sj_recorder_changes;
    sj_recorder_changes = NULL;
    if (mapped != NULL && sj_recorder_may_call()) { /* stays mapped under a seccomp filter */
        (void)sj_sys_unmap(mapped, sizeof(*mapped));
    }
}

/* True while the rules apply: they end with the recorder process. */
static bool is_in_force(sj_changes *changes)
{
    if (atomic_load(&sj_recorder.armed) == 0 || sj_recorder_is_forked()) {
        return false;
    }
    const uint64_t now = sj_arch_ticks();
    const uint64_t alive = atomic_load_explicit(&changes->alive_ticks, memory_order_relaxed);
    if (now < alive || now - alive <= changes->grace_ticks) {
        return true;
    }
    const bool may_call = sj_recorder_begin_calls();
    const bool is_alive = may_call && SJ_SYS(SYS_kill, changes->recorder, 0, 0, 0, 0, 0) != -ESRCH;
    if (may_call) {
        sj_recorder_end_calls();
    }
    if (!is_alive) {
        atomic_store(&changes->is_on, 0);
    } else {
        atomic_store(&changes->alive_ticks, now); /* the recorder is checked once a grace period */
    }
    return is_alive;
}

static const sj_changed_function *find_function(const sj_changes *changes, uint32_t function)
{
    uint32_t place = sj_changes_place(function);
    for (uint32_t i = 0; i < SJ_CHANGED_FUNCTIONS; i++) {
        const sj_changed_function *entry = &changes->functions[place];
        /* Pairs with the recorder, which writes the rules first. */
        const uint32_t held = atomic_load_explicit(&entry->function, memory_order_acquire);
        if (held == function || held == 0) {
            return held != 0 ? entry : NULL;
        }
        place = (place + 1) & (SJ_CHANGED_FUNCTIONS - 1);
    }
    return NULL;
}

static bool compares(uint8_t comparison, uint8_t descriptor, uint64_t bits, uint64_t operand)
{
    int order = (bits > operand) - (bits < operand);
    if (sj_value_is_signed(sj_value_kind_of(descriptor))) {
        order = ((int64_t)bits > (int64_t)operand) - ((int64_t)bits < (int64_t)operand);
    }
    switch (comparison) {
    case SJ_CHANGE_EQUAL:
        return order == 0;
    case SJ_CHANGE_UNEQUAL:
        return order != 0;
    case SJ_CHANGE_LESS:
        return order < 0;
    case SJ_CHANGE_AT_MOST:
        return order <= 0;
    case SJ_CHANGE_GREATER:
        return order > 0;
    case SJ_CHANGE_AT_LEAST:
        return order >= 0;
    default:
        return true;
    }
}

/* True if the thread's name equals `pattern`, up to the * at the end of the pattern if it has
 * one. */
static bool is_thread(const char pattern[SJ_CHANGE_THREAD_BYTES])
{
    char name[SJ_CHANGE_THREAD_BYTES];
    if (!sj_recorder_begin_calls()) {
        return false;
    }
    const long failed = SJ_SYS(SYS_prctl, PR_GET_NAME, (long)(uintptr_t)name, 0, 0, 0, 0);
    sj_recorder_end_calls();
    for (uint32_t i = 0; failed == 0 && i < SJ_CHANGE_THREAD_BYTES; i++) {
        if (pattern[i] == '*') {
            return true;
        }
        if (pattern[i] != name[i]) {
            return false;
        }
        if (name[i] == '\0') {
            return true;
        }
    }
    return false;
}

bool sj_recorder_is_asked_caller(uint32_t function)
{
    const sj_changes *changes = sj_recorder_changes;
    const sj_changed_function *found = changes != NULL ? find_function(changes, function) : NULL;
    uint64_t any = 0;
    for (uint32_t i = 0; found != NULL && i < SJ_CHANGE_RULE_WORDS; i++) {
        any |= atomic_load_explicit(&found->callers[i], memory_order_relaxed);
    }
    return any != 0;
}

static bool has_bit(const _Atomic uint64_t bits[SJ_CHANGE_RULE_WORDS], uint32_t place)
{
    return (atomic_load_explicit(&bits[place / 64], memory_order_relaxed) >> place % 64 & 1) != 0;
}

/* True if the call returns to a function that the rule at `place` names as its caller. */
static bool is_called_by(const sj_changes *changes, uint32_t place, const sj_judged_call *call)
{
    const uint32_t caller = call != NULL ? sj_recorder_function_at(call->return_address) : 0;
    const sj_changed_function *found = caller != 0 ? find_function(changes, caller) : NULL;
    return found != NULL && has_bit(found->callers, place);
}

static bool condition_holds(const sj_changes *changes, uint32_t place,
                            const sj_change_condition *condition, const sj_judged_call *call)
{
    uint64_t bits = 0;
    if (condition->is_caller != 0) {
        return is_called_by(changes, place, call);
    }
    if (condition->thread[0] != '\0') {
        return is_thread(condition->thread);
    }
    return call != NULL && call->read(call->context, condition->descriptor, &bits) &&
           compares(condition->comparison, condition->descriptor, bits, condition->operand);
}

/* True if `rule`, of this version, begins without a mark or its first mark has been passed. */
static bool is_between_marks(const sj_change_rule *rule, uint32_t place, uint32_t version)
{
    return rule->begin_mark[0] == '\0' ||
           atomic_load_explicit(&between[place], memory_order_relaxed) == (version | 1) ||
           atomic_load_explicit(&rule->is_between, memory_order_relaxed) != 0;
}

/* True if a call meets a rule's conditions. Counts nothing; `counts` does. */
static bool holds(const sj_changes *changes, uint32_t place, uint32_t version, uint64_t bits,
                  const sj_judged_call *call)
{
    const sj_change_rule *rule = &changes->rules[place];
    if (!compares(rule->comparison, rule->descriptor, bits, rule->operand) ||
        (rule->until_ticks != 0 && sj_arch_ticks() >= rule->until_ticks) ||
        !is_between_marks(rule, place, version)) {
        return false;
    }
    for (uint32_t i = 0; i < rule->condition_count && i < SJ_CHANGE_CONDITIONS; i++) {
        if (!condition_holds(changes, place, &rule->conditions[i], call)) {
            return false;
        }
    }
    return true;
}

static bool is_same(const char *text, const char mark[SJ_CHANGE_MARK_BYTES])
{
    for (uint32_t i = 0; i < SJ_CHANGE_MARK_BYTES; i++) {
        if (text[i] != mark[i] || text[i] == '\0') {
            return text[i] == mark[i];
        }
    }
    return false;
}

void sj_recorder_change_at_mark(const char *name, bool end)
{
    sj_changes *changes = sj_recorder_changes;
    for (uint32_t i = 0; changes != NULL && i < SJ_CHANGE_RULES; i++) {
        sj_change_rule *rule = &changes->rules[i];
        /* As in `fires`, a rule that the recorder writes meanwhile does not apply. */
        const uint32_t version = atomic_load_explicit(&rule->version, memory_order_acquire);
        if (rule->begin_mark[0] == '\0') {
            continue;
        }
        const bool begins = !end && is_same(name, rule->begin_mark);
        const bool ends = !begins && is_same(name, rule->end_mark);
        atomic_thread_fence(memory_order_acquire);
        if ((begins || ends) && version % 2 == 0 &&
            atomic_load_explicit(&rule->version, memory_order_relaxed) == version) {
            atomic_store(&between[i], begins ? version | 1 : 0);
        }
    }
}

/* Selects among the calls that meet a rule those to which it applies. */
typedef struct rule_turns {
    uint64_t from, one_in, times;
} rule_turns;

/* Counts a call that meets a rule. Returns true if the rule applies to this call. */
static bool counts(sj_change_rule *rule, const rule_turns *turns)
{
    const uint64_t met = atomic_fetch_add_explicit(&rule->met, 1, memory_order_relaxed) + 1;
    const uint64_t from = turns->from > 1 ? turns->from : 1;
    if (met < from || (turns->one_in > 1 && (met - from) % turns->one_in != 0)) {
        return false;
    }
    const uint64_t fired = atomic_fetch_add_explicit(&rule->fired, 1, memory_order_relaxed);
    if (turns->times != 0 && fired >= turns->times) {
        atomic_fetch_sub_explicit(&rule->fired, 1, memory_order_relaxed);
        return false;
    }
    return true;
}

static void pass_time(uint64_t delay_ns)
{
    enum { NS_PER_S = 1000000000 };
    struct timespec rest = {.tv_sec = (time_t)(delay_ns / NS_PER_S),
                            .tv_nsec = (long)(delay_ns % NS_PER_S)};
    if (delay_ns == 0 || !sj_recorder_begin_calls()) {
        return;
    }
    while (SJ_SYS(SYS_nanosleep, &rest, &rest, 0, 0, 0, 0) == -EINTR) {
    }
    sj_recorder_end_calls();
}

/* Describes what a rule does with a value. */
static void copy_due(const sj_change_rule *rule, uint32_t place, uint8_t descriptor, uint64_t bits,
                     sj_due_change *due)
{
    const bool sets = rule->action == SJ_CHANGE_SET || rule->action == SJ_CHANGE_RETURN;
    const bool writes = rule->action == SJ_CHANGE_WRITE;
    due->rule = place;
    due->action = rule->action;
    due->target = sets || writes ? rule->target : descriptor;
    due->error = rule->error;
    due->bits = sets ? rule->bits : bits;
}

uint32_t sj_recorder_due_bytes(const sj_due_change *due, uint8_t bytes[SJ_CHANGE_DATA_BYTES])
{
    const sj_change_rule *rule = &sj_recorder_changes->rules[due->rule];
    const uint32_t count = rule->data_bytes;
    for (uint32_t i = 0; i < SJ_CHANGE_DATA_BYTES; i++) {
        bytes[i] = ((const volatile uint8_t *)rule->data)[i];
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&rule->version, memory_order_relaxed) == due->version &&
                   count <= SJ_CHANGE_DATA_BYTES
               ? count
               : 0;
}

/* True if one rule applies; `*delay_ns` is then its delay. A rule that the recorder writes
 * meanwhile does not apply, neither the old one nor the new one. */
static bool fires(sj_changes *changes, uint32_t place, uint8_t descriptor, uint64_t bits,
                  const sj_judged_call *call, sj_due_change *due, uint64_t *delay_ns)
{
    sj_change_rule *rule = &changes->rules[place];
    /* Pairs with the recorder, which makes the version uneven before it writes and even after. */
    const uint32_t version = atomic_load_explicit(&rule->version, memory_order_acquire);
    /* The clock is read last, because most calls meet no rule. */
    if (version % 2 != 0 || rule->descriptor != descriptor ||
        !holds(changes, place, version, bits, call) || !is_in_force(changes)) {
        return false;
    }
    const rule_turns turns = {.from = rule->from, .one_in = rule->one_in, .times = rule->times};
    copy_due(rule, place, descriptor, bits, due);
    due->version = version;
    *delay_ns = rule->delay_ns;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&rule->version, memory_order_relaxed) == version &&
           counts(rule, &turns);
}

bool sj_recorder_judge(uint32_t function, uint8_t descriptor, uint64_t bits,
                       const sj_judged_call *call, sj_due_change *due)
{
    sj_changes *changes = sj_recorder_changes;
    const sj_changed_function *of = find_function(changes, function);
    uint64_t delay_ns = 0;
    if (of == NULL || atomic_load_explicit(&changes->is_on, memory_order_relaxed) == 0) {
        return false;
    }
    for (uint32_t word = 0; word < SJ_CHANGE_RULE_WORDS; word++) {
        uint64_t left = atomic_load_explicit(&of->rules[word], memory_order_relaxed);
        for (; left != 0; left &= left - 1) {
            const uint32_t place = word * 64 + (uint32_t)__builtin_ctzll(left);
            if (fires(changes, place, descriptor, bits, call, due, &delay_ns)) {
                pass_time(delay_ns);
                return true;
            }
        }
    }
    return false;
}

bool sj_recorder_is_idle(uint32_t function, uint8_t descriptor, uint64_t bits)
{
    const sj_changes *changes = sj_recorder_changes;
    const sj_changed_function *of = changes != NULL ? find_function(changes, function) : NULL;
    if (of == NULL || atomic_load_explicit(&of->is_quiet, memory_order_relaxed) == 0) {
        return false;
    }
    for (uint32_t word = 0; word < SJ_CHANGE_RULE_WORDS; word++) {
        uint64_t left = atomic_load_explicit(&of->rules[word], memory_order_relaxed);
        for (; left != 0; left &= left - 1) {
            const sj_change_rule *rule =
                &changes->rules[word * 64 + (uint32_t)__builtin_ctzll(left)];
            if (rule->descriptor == descriptor &&
                compares(rule->comparison, descriptor, bits, rule->operand)) {
                return false;
            }
        }
    }
    return true;
}

void sj_recorder_set_error(int32_t error)
{
    if (error != 0) {
        errno = error;
    }
}

bool sj_recorder_change_fits(const sj_due_change *due, sj_changed_number number)
{
    const uint32_t kind = sj_value_kind_of(due->target);
    const bool is_negative = (int64_t)due->bits < 0;
    if (number.is_real || sj_value_is_real(kind)) {
        return number.is_real && sj_value_is_real(kind) &&
               (number.bytes == sizeof(float)) == (kind == SJ_VALUE_FLOAT);
    }
    if (number.bytes == sizeof(uint64_t)) {
        return true;
    }
    const bool is_short = kind == SJ_VALUE_INT || kind == SJ_VALUE_UINT || kind == SJ_VALUE_CHAR ||
                          kind == SJ_VALUE_BOOL;
    return is_short && (due->bits <= number.most ||
                        (is_negative && number.most > 1 && 0 - due->bits <= number.most / 2 + 1));
}

void sj_recorder_change_is_unfit(const sj_due_change *due)
{
    if (sj_recorder_changes != NULL) {
        atomic_fetch_add_explicit(&sj_recorder_changes->rules[due->rule].unfit, 1,
                                  memory_order_relaxed);
    }
}
